"""One JSON text for another that means the same: white space, key order, form of numbers, escapes, unknown fields.

Numbers keep their value for every reader, also for one that holds all of them in doubles: an integer above 2^53 is left
as it is. Unknown fields go only into the outermost object and into objects of arrays, because the keys of any other
object may be data (a map from ids to values), where one more key would be one more entry. In a call they go only into
the outermost one: what is inside may be what another has said, and is passed on unchanged.
"""

import json
from collections.abc import Iterator
from typing import Any

from holdfast.reference.shared.stranger.traits import Traits

EXACT = 1 << 53
UNKNOWN: tuple[tuple[str, Any], ...] = (
    ("_links", {"self": {"href": "/"}}),
    ("debug_info", None),
    ("schemaVersion", 7),
    ("warnings", []),
)
"""Fields that no spec knows."""

_SEPARATORS = {"loose": (", ", ": "), "compact": (",", ":"), "spaced": (" , ", " : "), "indented": (",", ": ")}


class Verbatim(str):
    """A number that is written as it was read."""

    __slots__ = ()


def rewritten(text: bytes, traits: Traits, *, deep: bool = True) -> bytes:
    """Returns the same value in this dialect; a text that is no JSON as it is. `deep`: inside of it too."""
    try:
        value = json.loads(text, parse_float=Verbatim, parse_constant=Verbatim)
    except ValueError:
        return text
    return "".join(_value(_with_unknown(value, traits, deep=deep), traits, 0)).encode() + (
        b"\n" if text.endswith(b"\n") else b""
    )


def _with_unknown(value: Any, traits: Traits, *, deep: bool) -> Any:
    if isinstance(value, list):
        return [_with_unknown(each, traits, deep=deep) for each in value] if deep else value
    if not isinstance(value, dict) or traits.extra == "no":
        return value
    inner = {key: _of_list(each, traits) if deep and isinstance(each, list) else each for key, each in value.items()}
    name, unknown = UNKNOWN[sum(traits.name.encode()) % len(UNKNOWN)]
    return {name: unknown, **inner} if traits.extra == "first" else {**inner, name: unknown}


def _of_list(values: list[Any], traits: Traits) -> list[Any]:
    return [_with_unknown(each, traits, deep=True) for each in values]


def _value(value: Any, traits: Traits, depth: int) -> Iterator[str]:
    if isinstance(value, Verbatim):
        yield str(value)
    elif isinstance(value, str):
        yield _text(value, traits.escapes)
    elif isinstance(value, bool) or value is None:
        yield json.dumps(value)
    elif isinstance(value, int):
        yield _number(value, traits.numbers)
    elif isinstance(value, list):
        yield from _joined("[", [[*_value(each, traits, depth + 1)] for each in value], "]", traits, depth)
    else:
        colon = _SEPARATORS[traits.spacing][1]
        entries = [
            [_text(key, traits.escapes), colon, *_value(value[key], traits, depth + 1)]
            for key in _keys(value, traits.keys)
        ]
        yield from _joined("{", entries, "}", traits, depth)


def _joined(begin: str, entries: list[list[str]], end: str, traits: Traits, depth: int) -> Iterator[str]:
    indented = traits.spacing == "indented" and bool(entries)
    yield begin
    for place, entry in enumerate(entries):
        yield _SEPARATORS[traits.spacing][0] if place else ""
        yield "\r\n" + "\t" * (depth + 1) if indented else ""
        yield from entry
    yield "\r\n" + "\t" * depth + end if indented else end


def _keys(value: dict[str, Any], order: str) -> list[str]:
    if order == "sorted":
        return sorted(value)
    return list(reversed(value)) if order == "reversed" else list(value)


def _number(value: int, form: str) -> str:
    if form == "as written" or abs(value) > EXACT:
        return str(value)
    if form == "point":
        return f"{value}.0"
    digits = str(value)
    zeros = len(digits) - len(digits.rstrip("0")) if value else 0
    return f"{digits[: len(digits) - zeros]}e{zeros}"


def _text(value: str, escapes: str) -> str:
    text = json.dumps(value, ensure_ascii=escapes == "as written")
    if escapes == "utf-8" or not _encodes(text):
        return text if _encodes(text) else json.dumps(value)
    if escapes == "html":  # as Go does
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
    return text.replace("/", "\\/") if escapes == "slash" else text


def _encodes(text: str) -> bool:
    """Whether UTF-8 can carry the text; half a surrogate pair is JSON only as an escape."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
