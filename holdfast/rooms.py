"""Finds the rooms: folders of this package, or, in a checkout without symbolic links, folders beside it.

In a checkout `holdfast/chaos` is a link to `../chaos`. A zip download or a file system without links has a small text
file in its place, and an sdist has nothing there. Then `holdfast.__path__` is extended by the folder that holds the
rooms, so that `holdfast.chaos` imports under the same name (docs/decisions/0001-rooms-as-links.md). Data files are
found through `folder`, never through the path of this package.
"""

from functools import cache
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("proto", "conformance", "reference", "chaos", "load", "fixtures", "reports")
PACKAGE = Path(__file__).parent


def further_places(package: Path) -> list[str]:
    """Return what `holdfast.__path__` needs besides its own folder: nothing where every room is a folder in it."""
    missing = [room for room in ROOMS if not (package / room).is_dir()]
    beside = package.parent
    return [str(beside)] if missing and all((beside / room).is_dir() for room in missing) else []


def folder(room: str) -> Path:
    """Return the folder of a room with everything in it, code and data."""
    found = find_spec(f"holdfast.{room}")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"holdfast.{room} is not installed: the installation of Holdfast is not complete")
    return Path(found.submodule_search_locations[0])


def module_beside(path: Path) -> str | None:
    """Return the import name of a file or folder in a room beside the package; None for everything else."""
    for place in _places_beside():
        resolved = path.resolve()
        inside = resolved.relative_to(place).parts if resolved.is_relative_to(place) else ()
        if inside and inside[0] in ROOMS:
            return ".".join(("holdfast", *inside[:-1], inside[-1].removesuffix(".py")))
    return None


@cache
def _places_beside() -> tuple[Path, ...]:
    return tuple(Path(place).resolve() for place in further_places(PACKAGE))
