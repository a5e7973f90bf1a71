"""Text that came from a target, made safe to show.

A target may answer with anything: escape sequences that repaint a terminal, a NUL that no XML may hold, half a
surrogate pair that strict JSON readers refuse, a mark that turns the reading direction. What Python does not call
printable is therefore written out as an escape, once, where events enter the result model. HTML, XML and Rich
each add the quoting of their own syntax on top.
"""

import math
from collections.abc import Container
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar, cast

from rich.cells import cell_len, set_cell_size

Json = dict[str, Any]
T = TypeVar("T")


def _escape(char: str) -> str:
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str) -> str:
    """Returns the text on one line, every unprintable character (line feeds too) written out as an escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def visible_lines(text: str) -> str:
    """Like `visible`, but the line feeds stay: for texts of several lines, such as a traceback."""
    return "\n".join(visible(line) for line in text.split("\n"))


def clean(value: T) -> T:
    """Returns the value fit for every reader: texts visible, and None for NaN and infinity, which JSON does not know.

    Takes JSON values and the records of the event stream; a record comes back as a record of the same class.
    """
    return cast("T", _clean(value))


def _clean(value: Any) -> Any:
    match value:
        case str():
            return visible_lines(value)
        case dict():
            return {visible(str(key)): _clean(item) for key, item in value.items()}
        case list() | tuple():
            return [_clean(item) for item in value]
        case float() if not math.isfinite(value):
            return None
        case _ if is_dataclass(value) and not isinstance(value, type):
            return replace(value, **{name: _clean(item) for name, item in vars(value).items()})
        case _:
            return value


def as_json(value: Any, without: Container[str] = ()) -> Any:
    """Returns a record of the event stream, with all that it holds, as JSON; `without` leaves out some of its fields.

    Quicker than `dataclasses.asdict`, which copies every leaf.
    """
    match value:
        case dict():
            return {key: as_json(item) for key, item in value.items()}
        case list():
            return [as_json(item) for item in value]
        case _ if is_dataclass(value):
            return {name: as_json(item) for name, item in vars(value).items() if name not in without}
        case _:
            return value


def cut(text: str, width: int) -> str:
    """Returns at most `width` terminal cells of the text; an ellipsis shows that something is missing."""
    # Measuring cells is slow, and no character is narrower than a quarter of one on average.
    text = text[: 4 * width + 4] if len(text) > 4 * width + 4 else text
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + "…" if width > 0 else ""


def pad(text: str, width: int) -> str:
    """Returns the text cut or filled to exactly `width` terminal cells."""
    short = cut(text, width)
    return short + " " * (width - cell_len(short))


def between(left: str, right: str, width: int) -> str:
    """Returns one line with `left` and `right` at its borders; `left` is cut first."""
    right = cut(right, max(width // 2, 12))
    room = width - cell_len(right) - 2
    return f"{pad(left, room)}  {right}" if right else cut(left, width)


def seconds(value: float | None) -> str:
    """Returns a duration as people read it: `85 ms`, `6.1 s`, `2 m 05 s`."""
    if value is None:
        return "–"
    if value < 0:
        return "−" + seconds(-value)
    if round(value, 3) < 1:
        return f"{value * 1000:.0f} ms" if value else "0 s"
    if value < 99.95:
        return f"{value:.1f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} m {rest:02d} s"


def count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
