"""The mutation operators for Python, on functions small enough to be read."""

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reference.shared.drawn.edit import Edit
from holdfast.reference.shared.drawn.python_edits import Hints, edits_of, functions_of

HINTS = Hints(frozenset({"log"}), (("OPEN", "SHUT", "AJAR"),))


def edits(source: str, name: str = "f") -> list[Edit]:
    tree = ast.parse(source)
    return edits_of(source, tree, functions_of(tree)[name], HINTS)


def changed(source: str, kind: str) -> list[str]:
    """Returns the mutated sources of one kind, without their indentation."""
    text = textwrap.dedent(source).lstrip()
    return [edit.applied(text) for edit in edits(text) if edit.kind == kind]


def bodies(line: str, kind: str) -> list[str]:
    """Returns what an operator makes of the one line of a function."""
    made = changed(f"def f(a, b):\n    {line}\n", kind)
    return [text.split("\n", 1)[1].strip() for text in made]


@pytest.mark.parametrize(
    ("line", "kind", "made"),
    [
        ("return a < b", "comparison", ["return a <= b"]),
        ("return a >= b", "comparison", ["return a > b"]),
        ("return a == b != 1", "comparison", ["return a != b != 1", "return a == b == 1"]),
        ("return a not in b", "comparison", ["return a in b"]),
        ("return a is None", "comparison", ["return a is not None"]),
        ("return a + b", "arithmetic", ["return a - b"]),
        ("return a // b", "arithmetic", ["return a * b"]),
        ("a[0] -= b", "arithmetic", ["a[0] += b"]),
        ("return 'x' + a", "arithmetic", []),
        ("return a and b or a", "boolean", ["return a or b or a", "return a and b and a"]),
        ("return True", "boolean", ["return False"]),
        ("return 5", "constant", ["return 6", "return 4", "return 10", "return 0"]),
        ("return 0", "constant", ["return 1", "return (-1)"]),
        ("return 0.5", "constant", ["return 1.5", "return (-0.5)", "return 1.0", "return 0"]),
        ("return 'OPEN'", "word", ['return "SHUT"', 'return "AJAR"']),
        ("return 'ELSE'", "word", []),
        ("return not a", "negated guard", ["return (a)"]),
        ("return a if b else 1", "negated guard", ["return a if not (b) else 1"]),
        ("return [x for x in a if b]", "negated guard", ["return [x for x in a if not (b)]"]),
        ("return a < b", "negated guard", ["return not (a < b)"]),
        ("raise a", "removed raise", ["pass"]),
        ("a.send(b)", "dropped call", ["pass"]),
        ("a.log(5)", "dropped call", []),
        ("a.log(5)", "constant", []),
        ("a.b = 1", "dropped assignment", ["pass"]),
        ("a[1], b.c = 2, 3", "dropped assignment", ["pass"]),
        ("c = a", "dropped assignment", []),
        ("c: int = 5", "constant", ["c: int = 6", "c: int = 4", "c: int = 10", "c: int = 0"]),
        ("assert a == 5", "constant", []),
        ("return f'{5}'", "constant", []),
        (
            "return lambda: 7",
            "constant",
            ["return lambda: 8", "return lambda: 6", "return lambda: 14", "return lambda: 0"],
        ),
        ("with a: b()", "skipped with", ["if True: b()"]),
        ("with a as c: b(c)", "skipped with", []),
    ],
)
def test_an_operator_makes_one_change_each(line: str, kind: str, made: list[str]) -> None:
    assert sorted(bodies(line, kind)) == sorted(made)


def test_a_guard_is_negated_or_ignored_but_a_loop_is_never_made_endless() -> None:
    source = "def f(a):\n    if a:\n        return 1\n    while a:\n        break\n"
    assert [edit.says for edit in edits(source) if "guard" in edit.kind] == [
        "a never holds",
        "a always holds",
        "a becomes not (a)",
    ]
    assert not any(edit.kind == "dropped continue" for edit in edits(source))


def test_statements_are_swapped_unless_one_needs_the_other() -> None:
    assert changed("def f(a):\n    a.one()\n    a.two()\n", "swapped statements") == [
        "def f(a):\n    a.two()\n    a.one()\n"
    ]
    assert changed("def f(a):\n    b = a.one()\n    b.two()\n", "swapped statements") == []
    assert changed("def f(a):\n    b = 1\n    c = 2\n", "swapped statements") == []


def test_a_function_that_returns_nothing_may_return_early() -> None:
    source = "def f(a) -> None:\n    a.one()\n    a.two()\n"
    assert changed(source, "early return") == ["def f(a) -> None:\n    a.one()\n    return\n    a.two()\n"]
    assert changed(source.replace("None", "int"), "early return") == []


def test_a_return_or_continue_with_nothing_behind_it_is_not_dropped() -> None:
    assert changed("def f(a):\n    if a:\n        return\n", "dropped return") == []
    assert changed("def f(a):\n    for b in a:\n        if b:\n            continue\n", "dropped continue") == []
    assert len(changed("def f(a):\n    if a:\n        return\n    a()\n", "dropped return")) == 1
    assert (
        len(
            changed(
                "def f(a):\n    for b in a:\n        if b:\n            continue\n        b()\n", "dropped continue"
            )
        )
        == 1
    )


def test_an_await_is_skipped() -> None:
    assert changed("async def f(a):\n    await a()\n", "skipped await") == ["async def f(a):\n    pass\n"]


def test_a_constant_of_the_module_is_changed_where_it_is_used() -> None:
    source = "LIMIT = 5\nNAME = 'x'\ndef f(a):\n    return a < LIMIT, NAME\n"
    assert [edit.text for edit in edits(source) if edit.kind == "constant"] == [
        "(LIMIT * 2)",
        "(LIMIT + 1)",
        "(LIMIT - 1)",
        "0",
    ]


def test_docstrings_annotations_defaults_and_decorators_are_left_alone() -> None:
    assert edits('@five(5)\ndef f(a: Five[5] = 5) -> Five[5]:\n    """Five: 5."""\n    return a\n') == []


def test_a_constructor_keeps_its_statements() -> None:
    source = "class A:\n    def __init__(self):\n        self.a = 5\n        self.b = 6\n"
    assert {edit.kind for edit in edits(source, "A.__init__")} == {"constant"}


def test_letters_beyond_ascii_do_not_move_an_edit() -> None:
    assert changed("def f(a):\n    return ('…→', a < 1)\n", "comparison") == ["def f(a):\n    return ('…→', a <= 1)\n"]


def test_a_name_that_is_defined_twice_is_left_out() -> None:
    assert functions_of(ast.parse("def f(): 1\ndef f(): 2\ndef g(): 3\n")).keys() == {"g"}


atoms = st.sampled_from(["a", "b", "True", "0", "3", "2.5", "'OPEN'", "a.b", "b[1]", "a()"])
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["<", ">=", "==", "in", "is not", "+", "*", "and", "or"]), inner).map(
            lambda three: "({} {} {})".format(*three)
        ),
        inner.map(lambda one: f"(not {one})"),
        st.tuples(inner, inner).map(lambda two: f"({two[0]} if {two[1]} else 1)"),
    ),
    max_leaves=8,
)
statements = st.one_of(
    expressions.map(lambda e: f"a.x = {e}"),
    expressions.map(lambda e: f"a.call({e})"),
    expressions.map(lambda e: f"if {e}:\n        return 2"),
    expressions.map(lambda e: f"if {e}:\n        raise ValueError"),
)


@given(st.lists(statements, min_size=1, max_size=5))
def test_every_edit_of_any_function_is_valid_python_and_another_program(lines: list[str]) -> None:
    source = "def f(a, b) -> None:\n" + "".join(f"    {line}\n" for line in lines) + "    return None\n"
    before = ast.dump(ast.parse(source))
    for edit in edits(source):
        after = edit.applied(source)
        assert source[: edit.start] == after[: edit.start]
        assert after.endswith(source[edit.end :])
        assert ast.dump(ast.parse(after)) != before, edit
