"""Stores whose scripts are not atomic, or have other Lua bodies (`reference/shared/split.py`, `rescripted.py`)."""

from typing import ClassVar

from holdfast.reference.intents.scripts import Scripts
from holdfast.reference.intents.store import Store
from holdfast.reference.shared import split
from holdfast.reference.shared.rescripted import RescriptedStore


class Recording(split.Recording, Scripts):
    pass


class Split(split.SplitStore, Store):
    recording: ClassVar[type[split.Recording]] = Recording
    split: ClassVar[tuple[str, ...]] = ("accept",)


class Rescripted(RescriptedStore, Store):
    pass
