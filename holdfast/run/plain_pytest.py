"""pytest as `holdfast` uses it: only with what this command tells it, whatever the environment asks of other runs."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# Options and plugins that a CI, or a user, wants in every run of pytest. A verdict must not depend on them.
_OF_OTHERS = ("PYTEST_ADDOPTS", "PYTEST_PLUGINS")
_ALONE = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keeps foreign plugins and options away while pytest runs."""
    before = {name: os.environ.pop(name, None) for name in (*_OF_OTHERS, *_ALONE)}
    os.environ.update(_ALONE)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
