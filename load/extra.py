"""What a campaign needs beyond a plain install: said in one sentence where it is missing, and never imported here."""

import importlib.util
import sys
from pathlib import Path

HOW_TO_GET_IT = "holdfast load needs Locust and an HDR histogram: pip install 'holdfast-conformance[load]'"


class LoadError(ValueError):
    """Raised where a campaign can't be run; the text is one sentence that says what to do."""


def require_locust() -> None:
    """Raises LoadError unless what a campaign needs is installed."""
    if any(importlib.util.find_spec(name) is None for name in ("locust", "hdrh")):
        raise LoadError(HOW_TO_GET_IT)


def generator(key: str, more: list[str]) -> list[str]:
    """Returns the command of the generator: Locust with the file of this spec."""
    file = Path(__file__).parent / f"{key}.py"
    return [sys.executable, "-P", "-m", "locust", "-f", str(file), "--headless", "--only-summary", "--skip-log", *more]
