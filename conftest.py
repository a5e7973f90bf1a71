"""Makes `conformance/…` and `holdfast/conformance/…` the same argument, so that a module has one name.

With links pytest gets the path through the link. Without them (docs/decisions/0001-rooms-as-links.md) there is only the
room itself, and `holdfast/run/collect.py` gives its modules the same names.
"""

from pathlib import Path

import pytest

from holdfast.rooms import ROOMS


def _as_it_is_imported(arg: str, root: Path) -> str:
    path, *rest = arg.split("::")
    absolute = Path.cwd() / path
    if not absolute.is_relative_to(root):
        return arg
    inside = absolute.relative_to(root).parts
    room = inside[1:] if inside[:1] == ("holdfast",) else inside
    if not room or room[0] not in ROOMS:
        return arg
    parent = root / "holdfast" if (root / "holdfast" / room[0]).is_dir() else root
    return "::".join([str(parent.joinpath(*room)), *rest])


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.args[:] = [_as_it_is_imported(arg, config.rootpath) for arg in config.args]
