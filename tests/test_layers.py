"""The import rules of the rooms, and the tidiness that reviewers should not have to ask for."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("proto", "conformance", "reference", "chaos", "load", "fixtures", "reports")
# The kernel, each room importing only those before it, and the top layer, which may import everything.
KERNEL = ("spec", "target", "check", "run")
TOP = ("cli", "plugin")
# The one module of the kernel that puts the rooms together.
WIRING = {"holdfast/run/harness.py": {"fixtures", "chaos"}}
CHECKS = {"spec", "target", "check"}
MAY_IMPORT: dict[str, set[str]] = {
    **{room: {"proto", *KERNEL[:place]} for place, room in enumerate(KERNEL)},
    "proto": set(),
    "conformance": {"proto", *CHECKS},
    "reference": {"proto"},
    "fixtures": {"proto", *CHECKS},
    "chaos": {"proto", "fixtures", *CHECKS},
    "load": {"proto", "conformance", "fixtures", "chaos", *CHECKS},
    "reports": {"proto", *KERNEL},
}


def sources() -> list[Path]:
    rooms = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    kernel = [path for room in (*KERNEL, "cli") for path in (ROOT / "holdfast" / room).rglob("*.py")]
    return [*rooms, *kernel, *(ROOT / "holdfast").glob("*.py")]


def room_of(path: Path) -> str:
    head, *rest = path.relative_to(ROOT).with_suffix("").parts
    return head if head in ROOMS else rest[0]


def imported_rooms(path: Path) -> Iterator[str]:
    """Rooms of the project that a file imports; a name of no room is `holdfast` itself, which has no imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            head, _, rest = name.partition(".")
            if head == "holdfast" and rest:
                yield rest.split(".")[0]
            elif head in ROOMS:
                yield f"{head} (not through holdfast.)"


def test_every_room_imports_only_what_it_may() -> None:
    wrong = [
        f"{inside} imports {room}"
        for path in sources()
        if (mine := room_of(path)) not in (*TOP, "__init__", "rooms")
        for inside in [path.relative_to(ROOT).as_posix()]
        for room in imported_rooms(path)
        if room not in {mine, "rooms", *MAY_IMPORT[mine], *WIRING.get(inside, ())}
    ]
    assert wrong == []


def test_every_module_of_the_kernel_stands_in_a_room() -> None:
    alone = {path.stem for path in (ROOT / "holdfast").glob("*.py")} - {"__init__", "plugin", "rooms"}
    assert alone == set()


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


@pytest.mark.parametrize("room", ["conformance", "reference"])
def test_specs_share_through_shared_only(room: str) -> None:
    """A suite or a server imports its own folder and `shared`; `shared` imports no spec."""
    wrong = [
        f"{path.relative_to(ROOT).as_posix()} imports {name}"
        for path in (ROOT / room).rglob("*.py")
        if len(parts := path.relative_to(ROOT / room).parts) > 1
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and (name := node.module or "").startswith(f"holdfast.{room}.")
        if name.split(".")[2] not in {"shared", parts[0]}
    ]
    assert wrong == []
