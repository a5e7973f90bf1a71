"""The checks of a spec's suite, found without pytest: by importing its test modules."""

import importlib
from importlib import resources
from pathlib import Path

from holdfast.check import CheckSpec, spec_of

SCENARIOS = "scenarios"


def checks_of(key: str, *, scenarios: bool = False) -> dict[str, CheckSpec]:
    """Check functions by id (`admission/test_rate.py::test_x`); parametrized ones appear once.

    Chaos scenarios stand apart, in a folder of their own: they try whole stories, not single requirements.
    """
    place = f"{key}/{SCENARIOS}" if scenarios else key
    folder = Path(str(resources.files("holdfast") / "conformance" / place))
    found: dict[str, CheckSpec] = {}
    for path in sorted(folder.glob("test_*.py")):
        module = importlib.import_module(f"holdfast.conformance.{place.replace('/', '.')}.{path.stem}")
        for name, function in vars(module).items():
            if name.startswith("test_") and (spec := spec_of(function)):
                found[f"{place}/{path.name}::{name}"] = spec
    return found
