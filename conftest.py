"""Maps `conformance/…` to `holdfast/conformance/…`, so that both spellings import the same modules."""

from pathlib import Path

import pytest

ROOMS = ("conformance", "chaos", "load", "fixtures", "reports", "reference", "proto")


def _through_the_link(arg: str, root: Path) -> str:
    path, *rest = arg.split("::")
    absolute = Path(path) if Path(path).is_absolute() else Path.cwd() / path
    try:
        inside = absolute.relative_to(root)
    except ValueError:
        return arg
    if inside.parts and inside.parts[0] in ROOMS:
        return "::".join([str(root / "holdfast" / inside), *rest])
    return arg


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.args[:] = [_through_the_link(arg, config.rootpath) for arg in config.args]
