"""JSON as a Go server reads and writes it, because clients of Toxiproxy depend on its details.

Reading: only the first value of a body counts, keys match in any letter case, the last of two equal keys wins, null
leaves the default. Writing: compact, angle brackets and ampersands escaped, floats of 32 bits in their shortest form.
"""

import json
import math
import struct
import sys
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NoReturn

INT64 = range(-(1 << 63), 1 << 63)
WHITESPACE = " \t\r\n"
ESCAPED = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_ESCAPES = str.maketrans(ESCAPED)


class BodyError(ValueError):
    """A field has a value of the wrong type."""


class Fields:
    """A JSON object, read field by field."""

    def __init__(self, pairs: Iterable[tuple[str, Any]] = ()) -> None:
        self._values: dict[str, Any] = {}
        for key, value in pairs:
            if value is not None:
                self._values[key.lower()] = value

    def text(self, key: str, default: str = "") -> str:
        value = self._values.get(key, default)
        if not isinstance(value, str):
            _refuse(key, "a string")
        return value

    def flag(self, key: str, *, default: bool = False) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            _refuse(key, "a boolean")
        return value

    def whole(self, key: str, default: int = 0) -> int:
        value = self._values.get(key, default)
        if type(value) is not int or value not in INT64:
            _refuse(key, "a plain integer")
        return int(value)

    def number(self, key: str, default: float = 0.0) -> float:
        value = self._values.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= sys.float_info.max:
            _refuse(key, "a number")
        return int(value) if value == int(value) else float(value)

    def single(self, key: str, default: float) -> float:
        """Read a number as a float of 32 bits."""
        try:
            return as_single(float(self.number(key, default)))
        except OverflowError:
            _refuse(key, "a number of 32 bits")

    def fields(self, key: str) -> "Fields":
        value = self._values.get(key, Fields())
        if not isinstance(value, Fields):
            _refuse(key, "an object")
        return value

    def objects(self, key: str) -> "list[Fields]":
        return _objects(self._values.get(key, []), key)


def _refuse(key: str, wanted: str) -> NoReturn:
    raise BodyError(f"json: {key} must be {wanted}")


def _objects(value: Any, key: str) -> list[Fields]:
    if not isinstance(value, list) or not all(one is None or isinstance(one, Fields) for one in value):
        _refuse(key, "an array of objects")
    return [Fields() if one is None else one for one in value]


class _Fraction(float):
    """A number written with a fraction or an exponent, which an integer field refuses even if it is whole."""


def _no_constant(name: str) -> Any:
    raise BodyError(f"json: invalid number {name}")


_DECODER = json.JSONDecoder(object_pairs_hook=Fields, parse_float=_Fraction, parse_constant=_no_constant)


def _first_value(body: bytes) -> Any:
    text = body.decode("utf-8", "replace").lstrip(WHITESPACE)
    if not text:
        raise BodyError("EOF")
    try:
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError) as error:
        raise BodyError(f"json: {error}") from error


def read_object(body: bytes) -> Fields:
    value = _first_value(body)
    if value is not None and not isinstance(value, Fields):
        _refuse("the body", "an object")
    return value or Fields()


def read_objects(body: bytes) -> list[Fields]:
    value = _first_value(body)
    return [] if value is None else _objects(value, "the body")


def as_single(value: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", value))[0])


def write(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.translate(_ESCAPES)


def write_single(value: float) -> str:
    """Write the shortest digits that read back as the same 32 bits, with an exponent only for extreme numbers."""
    digits = next(text for size in range(1, 10) if as_single(float(text := f"{value:.{size}g}")) == value)
    if value and not 1e-6 <= math.fabs(value) < 1e21:
        mantissa, _, exponent = f"{Decimal(digits):e}".partition("e")
        sign, size = exponent[0], exponent[1:].zfill(2)
        return f"{mantissa}e{sign}{size}".replace("e-0", "e-")
    return f"{Decimal(digits):f}"
