"""Values in plain words, for readers who do not know Python: what a finding shows of them."""

import dataclasses
import enum
import errno
import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any


def plain(value: Any) -> str:
    """Returns the value as a reader of any trade understands it; never the address of an object."""
    describe = getattr(value, "describe", None)
    if callable(describe) and not isinstance(value, type):
        return str(describe())
    if value is None:
        return "nothing"
    for kind, words in _WORDS:
        if isinstance(value, kind):
            return words(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ", ".join(f"{name} {plain(item)}" for name, item in vars(value).items())
    said = str(value)
    return said if " object at 0x" not in said else f"some {type(value).__name__}"


def _mapping(value: Mapping[Any, Any]) -> str:
    pairs = (f"{name if isinstance(name, str) else plain(name)}: {plain(item)}" for name, item in value.items())
    return "{" + ", ".join(pairs) + "}"


# In this order: a truth value is a number to Python, an enumeration may be a text.
_WORDS: tuple[tuple[Any, Callable[[Any], str]], ...] = (
    (bool, lambda value: "true" if value else "false"),
    (enum.Enum, lambda value: str(value.value)),
    ((str, bytes), lambda value: repr(value).removeprefix("b")),
    ((int, float), str),
    (Mapping, _mapping),
    (Iterable, lambda value: f"[{', '.join(map(plain, value))}]"),
)


def in_words(error: BaseException) -> str:
    """Returns what went wrong as a reader understands it, without numbers of errors and addresses as tuples."""
    cause = getattr(error, "os_error", error)  # what a connector of aiohttp wraps
    if isinstance(cause, OSError) and cause.errno and cause.errno in errno.errorcode:
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__
