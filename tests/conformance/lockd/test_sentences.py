"""No Python in a finding: what a check says is a sentence, and a bare `assert` would print objects."""

import ast
from pathlib import Path

import pytest

SUITE = Path(__file__).parents[3] / "conformance" / "lockd"


@pytest.mark.parametrize("path", sorted(SUITE.rglob("*.py")), ids=lambda path: path.stem)
def test_no_check_asserts_without_words(path: Path) -> None:
    found = [node.lineno for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Assert)]
    assert not found, f"{path.name}: lines {found}; use `require`, `expect` or a Finding"


@pytest.mark.parametrize("path", sorted(SUITE.rglob("test_*.py")), ids=lambda path: path.stem)
def test_every_expectation_of_a_check_says_what_it_is_about(path: Path) -> None:
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    mute = [
        call.lineno
        for call in calls
        if isinstance(call.func, ast.Name)
        and call.func.id == "expect"
        and not any(keyword.arg == "why" for keyword in call.keywords)
    ]
    assert not mute, f"{path.name}: lines {mute}: expect(...) without `why`"
