"""The checks of a spec's suite, found without pytest: by importing its test modules."""

import importlib
import re

from holdfast import rooms
from holdfast.check.verifies import CheckSpec, spec_of

SCENARIOS = "scenarios"
# The checks of a suite that perform walks.
WALKS = "test_walk.py"
_CHECK = re.compile(r"^(?:async )?def (test_\w+)", re.MULTILINE)


def check_names(key: str) -> list[str]:
    """Ids of the check functions of a suite, read from its files: whoever only looks for a name needs no import."""
    files = sorted((rooms.folder("conformance") / key).glob("test_*.py"))
    return [f"{key}/{file.name}::{name}" for file in files for name in _CHECK.findall(file.read_text("utf-8"))]


def checks_of(key: str, *, scenarios: bool = False, naming: str = "") -> dict[str, CheckSpec]:
    """Check functions by id (`admission/test_rate.py::test_x`); parametrized ones appear once.

    `naming` leaves out modules whose text does not contain it. Whoever asks for the checks of one requirement saves
    the import of all other modules: most of a second.

    Chaos scenarios stand apart, in a folder of their own: they try whole stories, not single requirements.
    """
    place = f"{key}/{SCENARIOS}" if scenarios else key
    folder = rooms.folder("conformance") / place
    found: dict[str, CheckSpec] = {}
    for path in sorted(folder.glob("test_*.py")):
        if naming not in path.read_text(encoding="utf-8"):
            continue
        module = importlib.import_module(f"holdfast.conformance.{place.replace('/', '.')}.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_") and (spec := spec_of(function)):
                found[f"{place}/{path.name}::{name}"] = spec
    return found
