"""What the kernel says about a process: the receipts of process faults."""

from pathlib import Path


def state(pid: int | None) -> str:
    """The letter that /proc shows (R, S, T, Z …); empty when there is no such process."""
    if pid is None:
        return ""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def started(pid: int | None) -> int:
    """When it started, in clock ticks since boot; a pid alone may have been used again."""
    if pid is None:
        return 0
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, IndexError, ValueError):
        return 0
