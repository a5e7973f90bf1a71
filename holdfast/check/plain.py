"""Values in plain words, for readers who do not know Python: what a finding shows of them."""

import dataclasses
import enum
import errno
import os
import re
import ssl
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


# What libraries put into the text of an error: its number, and the address as Python writes it.
_FOR_PROGRAMMERS = re.compile(r"\[Errno \w+\] ?| ?\('[^']*', \d+[^)]*\)")


def in_words(error: BaseException) -> str:
    """Returns what went wrong as a reader understands it, without numbers of errors and addresses as tuples."""
    # What a connector of aiohttp wraps.
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", None) or error
    if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_message:
        return str(cause.verify_message)
    if isinstance(cause, ssl.SSLError):  # its number is one of TLS and means something else to the system
        return str(cause.reason or cause.strerror or "TLS failed").replace("_", " ").lower()
    if isinstance(cause, OSError) and cause.errno and cause.errno in errno.errorcode:
        return os.strerror(cause.errno)
    # Of what could not be read as HTTP, aiohttp's text begins with a status that the server never gave.
    said = _FOR_PROGRAMMERS.sub("", _first_line(getattr(cause, "message", "")) or str(cause))
    return said if said and " object at 0x" not in said else _spaced(type(cause).__name__)


def _first_line(text: object) -> str:
    return next(iter(str(text).strip().splitlines()), "").rstrip(":")


def _spaced(name: str) -> str:
    """Returns `bad status line` of BadStatusLine."""
    return "".join(f" {char.lower()}" if char.isupper() else char for char in name).strip()
