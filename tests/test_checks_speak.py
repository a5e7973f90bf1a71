"""A failed check says what is wrong in a sentence: no bare assertion, no object of Python in its words.

What a check or a driver raises is read by people who know the document and not the code. So an `assert` has a message,
messages hold no `!r` of anything but a text, and an `expect` that compares a truth value says why.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import TypeGuard

import pytest

from tests.pages import ROOT

SUITES = ROOT / "conformance"
# Calls whose arguments are read in a report.
SPEAKING = frozenset({"Finding", "Unsafe", "Absent", "Inconclusive", "NotObservable", "NotApplicable", "expect"})
# Functions that give a collection of objects.
COLLECTIONS = frozenset({"list", "set", "dict", "tuple", "sorted", "got", "events"})
# Functions that give a truth value, which says nothing without a reason.
YES_OR_NO = frozenset({"any", "all", "bool", "isinstance", "hasattr"})


def offences(source: str) -> Iterator[str]:
    """Yields each place whose words would not be a sentence, with its line."""
    tree = ast.parse(source)
    lists = {id(node): names for scope in ast.walk(tree) for node, names in _in_scope(scope)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            if node.msg is None:
                yield f"line {node.lineno}: assert without a sentence"
            else:
                yield from _objects(node.msg, lists.get(id(node), frozenset()))
        elif isinstance(node, ast.Call) and _name(node.func) in SPEAKING:
            for given in [*node.args, *(keyword.value for keyword in node.keywords)]:
                yield from _objects(given, lists.get(id(node), frozenset()))
            if _name(node.func) == "expect" and _yes_or_no(node):
                yield f"line {node.lineno}: expect of a truth value without why="
        elif isinstance(node, ast.Call) and _name(node.func) == "parametrize" and _unnamed(node):
            yield f"line {node.lineno}: parametrize names its checks as Python writes the values; give ids="


def _in_scope(scope: ast.AST) -> Iterator[tuple[ast.AST, frozenset[str]]]:
    """Yields all that a function contains, with the names that are collections there."""
    if not isinstance(scope, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    inside = list(ast.walk(scope))
    named = [(each.targets, each.value) for each in inside if isinstance(each, ast.Assign)]
    named += [([each.target], each.value) for each in inside if isinstance(each, ast.NamedExpr)]
    lists = {target.id for targets, value in named if _is_collection(value) for target in targets if _plain(target)}
    others = {
        target.id for targets, value in named if not _is_collection(value) for target in targets if _plain(target)
    }
    yield from ((node, frozenset(lists - others)) for node in inside)


def _plain(target: ast.expr) -> TypeGuard[ast.Name]:
    return isinstance(target, ast.Name)


def _objects(words: ast.expr, lists: frozenset[str]) -> Iterator[str]:
    for node in ast.walk(words):
        if not isinstance(node, ast.FormattedValue):
            continue
        if node.conversion == ord("r") and not _is_text(node.value):
            yield f"line {node.lineno}: !r of {ast.unparse(node.value)}, which may be any object"
        elif _is_collection(node.value) or (isinstance(node.value, ast.Name) and node.value.id in lists):
            yield f"line {node.lineno}: {ast.unparse(node.value)} would show as Python writes it; join its words"


def _is_text(value: ast.expr) -> bool:
    """Whether the value is surely a text or bytes: a constant, a slice, or what a function of texts returns."""
    if isinstance(value, ast.Constant | ast.JoinedStr):
        return True
    if isinstance(value, ast.Subscript):
        return isinstance(value.slice, ast.Slice)
    return isinstance(value, ast.Call) and _name(value.func) in {"str", "decode", "shortened"}


def _is_collection(value: ast.expr) -> bool:
    """Whether the value is surely a list, a set or a table, which Python shows with the repr of all that it holds."""
    if isinstance(value, ast.Call):
        return _name(value.func) in COLLECTIONS
    literals = (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return isinstance(value, literals) or (isinstance(value, ast.Attribute) and value.attr in {"calls", "received"})


def _unnamed(call: ast.Call) -> bool:
    """Whether a value of a parametrized check is None, True or False and nothing names it."""
    if any(keyword.arg == "ids" for keyword in call.keywords):
        return False
    constants = (node for node in ast.walk(call) if isinstance(node, ast.Constant))
    return any(node.value is None or isinstance(node.value, bool) for node in constants)


def _yes_or_no(call: ast.Call) -> bool:
    if any(keyword.arg == "why" for keyword in call.keywords) or not call.args:
        return False
    seen = call.args[0]
    if isinstance(seen, ast.Call):
        return _name(seen.func) in YES_OR_NO
    return isinstance(seen, ast.Compare | ast.BoolOp) or (
        isinstance(seen, ast.UnaryOp) and isinstance(seen.op, ast.Not)
    )


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def found() -> dict[str, list[str]]:
    """Every file of the suites that has such places."""
    files = {path.relative_to(ROOT).as_posix(): list(offences(path.read_text("utf-8"))) for path in _files()}
    return {name: places for name, places in files.items() if places}


def _files() -> list[Path]:
    return sorted(SUITES.rglob("*.py"))


def test_what_a_check_says_is_a_sentence() -> None:
    assert not found(), "\n".join(f"{name}: {place}" for name, places in found().items() for place in places)


@pytest.mark.parametrize(
    "source",
    [
        "assert released",
        "assert released, f'not released: {spy!r}'",
        "raise Finding(['a release'], f'{calls!r}')",
        "assert not spy.calls, f'there were {spy.calls}'",
        "assert not late, f'late: {sorted(late)}'",
        "def check():\n  late = [call for call in calls]\n  assert not late, f'late: {late}'",
        "expect(a == b, True)",
        "expect(any(calls), True)",
        "expect(not calls, True)",
        "parametrize('said', [None, 1])",
    ],
)
def test_a_place_without_a_sentence_is_seen(source: str) -> None:
    assert list(offences(source))


@pytest.mark.parametrize(
    "source",
    [
        "assert released, 'the leader kept its lease'",
        "raise Finding(['4xx'], f'{raw.text[:80]!r}')",
        "expect(a == b, True, why='the two lists are the same')",
        "expect(answer, success())",
        "assert not late, f'late: {plain(late)}'",
        "log(f'{spy!r}')",
        "parametrize('said', [None, 1], ids=['no term', 'a term'])",
    ],
)
def test_a_sentence_is_left_alone(source: str) -> None:
    assert not list(offences(source))
