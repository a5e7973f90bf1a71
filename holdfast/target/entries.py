"""Single entries of a descriptor as values; each raises ValueError with the key and the remedy."""

import os
from typing import Any

from holdfast.spec.catalogue import CatalogueError, seconds


def window(name: str, text: Any) -> float:
    try:
        return seconds(text)
    except (ValueError, CatalogueError, AttributeError, TypeError) as error:
        raise ValueError(f'[windows] {name}: {text!r} is no duration; write {name} = "45s"') from error


def entry_point(name: str, value: Any) -> str:
    if not isinstance(value, str) or value.count(":") != 1:
        raise ValueError(f'[files] {name}: write "package.module:function", which gets a folder and the node names')
    return value


def from_environment(name: str, value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith("env:"):
        return value
    variable = value.removeprefix("env:")
    if variable not in os.environ:
        raise ValueError(f"[credentials] {name}: the environment variable {variable} is not set")
    return os.environ[variable]
