"""What a run has on this machine: processes, listening sockets and folders, as the kernel lists them.

Tests run side by side, so a plain list before and after would show the neighbours' doings. What belongs to a run is
known by the TMPDIR that it was started with, which a process keeps in its first environment, and by descent: Redis
writes its title over that environment.
"""

from dataclasses import dataclass
from pathlib import Path

_LISTENING = "0A"


@dataclass(frozen=True)
class Process:
    """A pid may be used again; with the time of its start it may not."""

    pid: int
    started: int
    command: str


@dataclass(frozen=True)
class Standing:
    processes: frozenset[Process]
    sockets: frozenset[str]
    folders: frozenset[Path]

    def left(self) -> "Standing":
        """Return what of it is still there."""
        return Standing(
            frozenset(process for process in self.processes if _process(process.pid) == process),
            self.sockets & _listening(),
            frozenset(folder for folder in self.folders if folder.exists()),
        )

    def __bool__(self) -> bool:
        return bool(self.processes or self.sockets or self.folders)


def look(scratch: Path) -> Standing:
    marked = {pid for pid in _pids() if _is_marked(pid, scratch)}
    processes = {found for pid in marked | _descendants(marked) if (found := _process(pid))}
    sockets = {inode for process in processes for inode in _sockets_of(process.pid)}
    folders = {path for path in scratch.iterdir() if path.name.startswith("holdfast-")}
    return Standing(frozenset(processes), frozenset(sockets & _listening()), frozenset(folders))


def _listening() -> frozenset[str]:
    """Listening sockets by their inode, which is not used again as a port may be."""
    tables = [Path(f"/proc/net/{table}").read_text().splitlines()[1:] for table in ("tcp", "tcp6")]
    fields = [line.split() for lines in tables for line in lines]
    return frozenset(line[9] for line in fields if line[3] == _LISTENING)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _is_marked(pid: int, scratch: Path) -> bool:
    try:
        return f"TMPDIR={scratch}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _descendants(pids: set[int]) -> set[int]:
    parents = {pid: int(stat[1]) for pid in _pids() if (stat := _stat(pid))}
    found, fresh = set[int](), pids
    while fresh:
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
        found |= fresh
    return found


def _process(pid: int) -> Process | None:
    """None for a zombie too: it holds nothing, and its parent is the test."""
    stat = _stat(pid)
    if not stat or stat[0] == "Z":
        return None
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").strip()
    except OSError:
        return None
    return Process(pid, int(stat[19]), command)


def _stat(pid: int) -> list[str]:
    """The fields of /proc/<pid>/stat from the third on: the second may hold anything."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _sockets_of(pid: int) -> set[str]:
    try:
        names = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return set()
    return {name[8:-1] for name in names if name.startswith("socket:[")}
