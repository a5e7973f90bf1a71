"""The import rules of the rooms, and the tidiness that reviewers should not have to ask for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.catalogue import Catalogue, builtin, builtin_keys
from holdfast.check import CheckSpec, Claim
from holdfast.suite import checks_of

ROOT = Path(__file__).parent.parent
ROOMS = ("proto", "conformance", "reference", "chaos", "load", "fixtures", "reports")
# The top layer puts the rooms together; everything else in holdfast/ is the kernel.
TOP = ("holdfast/cli/", "holdfast/plugin.py", "holdfast/session.py", "holdfast/wiring.py")
MAY_IMPORT = {
    "kernel": {"proto"},
    "proto": set(),
    "conformance": {"proto", "kernel"},
    "reference": {"proto"},
    "fixtures": {"proto", "kernel"},
    "chaos": {"proto", "kernel", "fixtures"},
    "load": {"proto", "kernel", "conformance", "fixtures", "chaos"},
    "reports": {"proto", "kernel"},
}


def sources() -> list[Path]:
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    ours = [ROOT / "holdfast", ROOT / "holdfast" / "cli", ROOT / "holdfast" / "invariants"]
    return [*rooms, *(path for folder in ours for path in folder.glob("*.py"))]


def room_of(path: Path) -> str:
    inside = path.relative_to(ROOT).as_posix()
    if inside.startswith(TOP):
        return "top"
    head = inside.split("/")[0]
    return head if head in ROOMS else "kernel"


def imported_rooms(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "holdfast":
                room = rest.split(".")[0]
                yield room if room in ROOMS else "kernel"
            elif head in ROOMS:
                yield f"{head} (not through holdfast.)"


def test_every_room_imports_only_what_it_may() -> None:
    wrong = [
        f"{path.relative_to(ROOT)} imports {room}"
        for path in sources()
        if (mine := room_of(path)) != "top"
        for room in imported_rooms(path)
        if room != mine and room not in MAY_IMPORT[mine]
    ]
    assert wrong == []


def test_the_kernel_does_not_reach_up_to_its_top_layer() -> None:
    tops = re.compile(r"from holdfast\.(cli|plugin|session|wiring)\b")
    wrong = [str(p) for p in sources() if room_of(p) != "top" and tops.search(p.read_text())]
    assert wrong == []


def test_files_stay_below_four_hundred_lines() -> None:
    long = [f"{p.relative_to(ROOT)}: {n}" for p in sources() if (n := len(p.read_text().splitlines())) > 400]
    assert long == []


def test_every_lint_exception_has_its_reason() -> None:
    bare = re.compile(r"#\s*(noqa(: [A-Z0-9, ]+)?|type: ignore(\[[a-z-]+\])?)\s*$")
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*sources(), *(ROOT / "tests").rglob("*.py")]
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if bare.search(line)
    ]
    assert wrong == []


def literal_seconds(path: Path) -> Iterator[str]:
    """Calls that wait or set a limit, with a number where a timing belongs."""
    waits = {"sleep", "sleep_until", "until", "wait_for", "timeout", "event", "admitted", "closed_by_server"}
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        values = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("give_up", "within"))]
        if name in waits and any(
            isinstance(v, ast.Constant) and isinstance(v.value, int | float) and v.value for v in values
        ):
            yield f"{path.relative_to(ROOT)}:{node.lineno}"


def test_checks_have_no_literal_seconds() -> None:
    found = [place for p in (ROOT / "conformance").rglob("test_*.py") for place in literal_seconds(p)]
    assert found == []


@pytest.mark.parametrize("key", builtin_keys())
def test_every_part_of_every_row_has_a_check(key: str) -> None:
    claimed = {(claim.id, claim.part) for spec in checks_of(key).values() for claim in spec.claims}
    missing = [
        f"{row.id} part {part.number}"
        for row in builtin(key)
        if not row.excluded
        for part in row.parts
        if (row.id, part.number) not in claimed
    ]
    assert missing == []


@pytest.mark.parametrize("key", builtin_keys())
def test_every_part_can_be_judged_with_no_more_than_it_needs(key: str) -> None:
    """A check needs the union of its claims' needs, so each part wants one that asks for no more."""
    catalogue, checks = builtin(key), checks_of(key).values()
    enough = {(c.id, c.part) for spec in checks for c in spec.claims if _asks_no_more(spec, catalogue, c)}
    blind = [
        f"{row.id} part {part.number}"
        for row in catalogue
        if not row.excluded
        for part in row.parts
        if (row.id, part.number) not in enough
    ]
    assert blind == []


def _asks_no_more(spec: CheckSpec, catalogue: Catalogue, claim: Claim) -> bool:
    return spec.needs(catalogue) <= catalogue.requirements[claim.id].part(claim.part).needs


def test_nothing_names_the_machine_it_was_written_on() -> None:
    places = re.compile(r"/work/|/farm/|registry\.npmjs|pythonhosted|deb\.debian|proxy\.golang|pypi\.org")
    here = Path(__file__).name
    wrong = [
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*")
        if path.is_file()
        and path.suffix in {".py", ".md", ".toml", ".ini", ".lua", ".yaml", ".j2", ".txt"}
        and not any(part.startswith((".", "holdfast-results")) for part in path.relative_to(ROOT).parts)
        and path.name != here
        and places.search(path.read_text(errors="ignore"))
    ]
    assert wrong == []
