"""The mutation operators for Lua, on functions small enough to be read."""

import pytest

from holdfast.reference.shared.drawn.lua_edits import body_of, edits_of, words_of

WORDS = (("OPEN", "SHUT", "AJAR"),)


def function(*lines: str) -> str:
    return "-- 5 and not\nlocal function f(a, b)\n" + "".join(f"  {line}\n" for line in lines) + "end\n"


def made(kind: str, *lines: str) -> list[str]:
    """Returns the bodies that one operator makes of a function with these lines, without indentation."""
    source = function(*lines)
    after = [edit.applied(source) for edit in edits_of(source, WORDS) if edit.kind == kind]
    return ["; ".join(line.strip() for line in text[slice(*body_of(text))].splitlines()) for text in after]


@pytest.mark.parametrize(
    ("line", "kind", "wanted"),
    [
        ("return a < b", "comparison", ["return a <= b"]),
        ("return a ~= b", "comparison", ["return a == b"]),
        ("return a + b", "arithmetic", ["return a - b"]),
        ("return -1", "arithmetic", []),
        ("return a .. b", "arithmetic", []),
        ("return a and b", "boolean", ["return a or b"]),
        ("return true", "boolean", ["return false"]),
        ("return 5", "constant", ["return 6", "return 4", "return 10", "return 0"]),
        ("return not a", "negated guard", ["return a"]),
        ("return 'OPEN'", "word", ["return 'SHUT'", "return 'AJAR'"]),
        ("return a -- 5 < 6", "constant", []),
        ("return '5 < 6'", "comparison", []),
    ],
)
def test_an_operator_makes_one_change_each(line: str, kind: str, wanted: list[str]) -> None:
    assert sorted(made(kind, line)) == sorted(wanted)


def test_a_guard_is_negated_or_ignored() -> None:
    assert made("negated guard", "if a then", "  b()", "end") == ["if not (a) then; b(); end"]
    assert made("ignored guard", "if a then", "  b()", "end") == [
        "if (a) and false then; b(); end",
        "if (a) or true then; b(); end",
    ]


def test_a_write_a_call_and_an_assignment_are_dropped_whole() -> None:
    assert made("dropped write", "write('SET', a,", "  b)", "return b") == ["return b"]
    assert made("dropped call", "touch(a)", "return b") == ["return b"]
    assert made("dropped assignment", "a.state = b", "return b") == ["return b"]
    assert made("dropped call", "local c = touch(a)", "return c") == []


def test_a_return_is_dropped_where_something_comes_after_it() -> None:
    assert made("dropped return", "if a then", "  return b", "end", "return a") == ["if a then; end; return a"]
    assert made("dropped return", "return a") == []


def test_neighbours_in_one_block_are_swapped() -> None:
    assert made("swapped statements", "one(a)", "two(b)") == ["two(b); one(a)"]
    assert made("swapped statements", "one(a)", "if a then", "  two(b)", "end") == []
    assert made("swapped statements", "one(a)", "return two(b)") == []


def test_a_loop_is_never_made_endless() -> None:
    source = function("while a do", "  break", "end")
    assert edits_of(source, WORDS) == []


def test_comments_and_form_are_no_part_of_what_a_function_does() -> None:
    assert words_of("local function f()\n  return 1 -- one\nend\n") == words_of("local function f()\nreturn   1\nend\n")
