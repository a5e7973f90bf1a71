"""Prints how many lines of each room the unit tests ran: `python -m tests.coverage_by_room`, after `pytest --cov`.

The conformance suite runs in `tox -e conformance` against servers in processes of their own, so its figure here, and
that of the references, says only what the unit tests call directly.
"""

import sys
from collections import Counter
from pathlib import Path

from coverage import Coverage

ROOT = Path(__file__).parent.parent


def room_of(file: str) -> str:
    """The folder below the root, and inside `holdfast/` the room of the kernel."""
    head, *rest = Path(file).relative_to(ROOT.resolve()).parts
    return f"{head}/{rest[0]}" if head == "holdfast" and len(rest) > 1 else head


def main() -> int:
    measured, lines, ran = Coverage(), Counter[str](), Counter[str]()
    measured.load()
    for file in (name for name in measured.get_data().measured_files() if name.endswith(".py")):
        _, statements, _, missing, _ = measured.analysis2(file)
        lines[room_of(file)] += len(statements)
        ran[room_of(file)] += len(statements) - len(missing)
    print(f"{'unit tests ran':<18} {'lines':>6}   share")
    for room in sorted(room for room in lines if lines[room]):
        print(f"  {room:<16} {lines[room]:>6}   {ran[room] / lines[room]:4.0%}")
    print(f"  {'in all':<16} {lines.total():>6}   {ran.total() / max(1, lines.total()):4.0%}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
