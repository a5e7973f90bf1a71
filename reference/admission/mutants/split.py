"""A store whose scripts are not atomic (`reference/shared/split.py` says how); a mutant names them in `split`."""

from typing import ClassVar

from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.admission.store import Store
from holdfast.reference.shared import split
from holdfast.reference.shared.split import RECORD

__all__ = ["RECORD", "Recording", "Split"]


class Recording(split.Recording, Scripts):
    pass


class Split(split.SplitStore, Store):
    recording: ClassVar[type[split.Recording]] = Recording
    split: ClassVar[tuple[str, ...]] = ("decide",)
