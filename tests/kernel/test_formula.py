"""Formulas: what they may say, and that the interpreter's own trouble with threads is none of theirs."""

import ast

import pytest

from holdfast.spec import formula


def test_a_formula_is_arithmetic_on_names() -> None:
    assert formula.evaluate("grace + 2*max(slack, 1)", {"grace": 3.0, "slack": 4.0}.__getitem__) == 11.0
    assert sorted(formula.names_in("a - min(b, 2)/c")) == ["a", "b", "c"]
    for wrong in ("a +", "print(a)", "a ** 2"):
        with pytest.raises(formula.FormulaError):
            formula.evaluate(wrong, lambda _name: 1.0)


def test_a_parser_that_another_thread_has_confused_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    parse, confused = ast.parse, [3]

    def parses(*words: str, **more: str) -> ast.AST:
        confused[0] -= 1
        if confused[0] >= 0:
            raise SystemError("AST constructor recursion depth mismatch (before=51, after=144)")
        return parse(*words, **more)  # type: ignore[call-overload, no-any-return]  # whatever it is given

    monkeypatch.setattr(ast, "parse", parses)
    assert formula.evaluate("a + 0.125", lambda _name: 1.0) == 1.125
