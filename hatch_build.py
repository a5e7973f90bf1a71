"""Puts the rooms into the wheel from where they are, with or without links (docs/decisions/0001-rooms-as-links.md).

Hatchling would follow the links in `holdfast/`; an sdist or a zip download has none. So the wheel leaves the links out
and takes every room from the root. An editable install gets nothing here: it uses the checkout itself.
"""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOMS = ("proto", "conformance", "reference", "chaos", "load", "fixtures", "reports")


class RoomsHook(BuildHookInterface[Any]):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "standard":
            build_data["force_include"] |= {str(Path(self.root, room)): f"holdfast/{room}" for room in ROOMS}
