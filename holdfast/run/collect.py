"""Gives the suite's modules their one name in a checkout without links, where pytest would choose another.

pytest names a module after the folders around its file. With links the file is `holdfast/conformance/…` and the name is
right. Without links the room is beside the package: pytest would import `conformance.admission.test_version` a second
time, under a name that no other module uses. The two hooks here import such a file by its name in `holdfast.rooms`.
They leave every other file to pytest.
"""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from holdfast import rooms


class RoomModule(pytest.Module):
    """A module of a room that is no folder of the package, imported as `holdfast.<room>.…`."""

    def _getobj(self) -> ModuleType:
        return importlib.import_module(rooms.module_beside(self.path) or "")


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return RoomModule.from_parent(parent, path=module_path) if rooms.module_beside(module_path) else None


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """A plain folder, not pytest's Package: setting up a Package imports its `__init__.py` by the wrong name."""
    return pytest.Dir.from_parent(parent, path=path) if rooms.module_beside(path) else None
