"""The hard modules say how they work and why: 12 % and more of their lines are docstrings and comments."""

import ast
import io
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LEAST = 0.12
HARD = [
    "holdfast/run/session.py",
    "holdfast/run/scheduler.py",
    "holdfast/run/perform.py",
    "fixtures/deploy.py",
    "fixtures/deployment.py",
    "fixtures/guardian.py",
    "reference/lockd/election.py",
    "reference/lockd/leadership.py",
    "reference/shared/scripts.py",
    "chaos/links/flow.py",
    "chaos/relay/proxy.py",
    "chaos/relay/tcp.py",
    "chaos/relay/stage.py",
    "chaos/relay/programs.py",
    "chaos/relay/udp.py",
    "chaos/relay/datagrams.py",
]
# Modules whose first docstring tells the theory of operation, not only what is there.
LONG = 8


def explained(source: str) -> set[int]:
    """The numbers of the lines that belong to a docstring or hold nothing but a comment."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found |= set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("#"):
            found.add(token.start[0])
    return found


@pytest.mark.parametrize("module", HARD)
def test_a_hard_module_tells_its_theory_of_operation(module: str) -> None:
    source = (ROOT / module).read_text()
    lines = {number for number, line in enumerate(source.splitlines(), 1) if line.strip()}
    share = len(explained(source) & lines) / len(lines)
    assert share >= LEAST, f"{share:.1%} of its lines say why"
    assert len((ast.get_docstring(ast.parse(source)) or "").splitlines()) >= LONG
