"""RESP 2 and 3, read piece by piece as the bytes come over a connection.

`Parser.feed` gives each value that is complete, together with its bytes, so that whoever passes them on can pass on
exactly what came. Nothing is assumed about where a piece ends. A long value is not parsed again with every piece: the
parser remembers how many bytes it needs at least before it is worth another try.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

END = b"\r\n"
_LONGEST_LINE = 1 << 16
_COUNTS = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2, ord("|"): 2}


_BULKS = frozenset(b"$!=")


class ProtocolError(ValueError):
    """The bytes are no RESP."""


class _Incomplete(Exception):  # noqa: N818 - not an error
    def __init__(self, needed: int) -> None:
        self.needed = needed


@dataclass(frozen=True)
class Failure:
    """An error reply."""

    text: str


@dataclass(frozen=True)
class Push:
    """An out-of-band message of RESP 3."""

    words: tuple[Any, ...]


class Pairs(list[Any]):
    """A map of RESP 3, as a flat list of names and values."""


class Members(list[Any]):
    """A set of RESP 3."""


class Null:
    """The null of RESP 3, which is written differently from that of RESP 2 (None)."""

    def __repr__(self) -> str:
        return "None"


NULL = Null()
_LISTS: Mapping[int, Callable[[list[Any]], Any]] = {
    ord("*"): list,
    ord("%"): Pairs,
    ord("~"): Members,
    ord(">"): lambda items: Push(tuple(items)),
}
_HEADS = {Pairs: b"%%%d\r\n", Members: b"~%d\r\n", list: b"*%d\r\n", tuple: b"*%d\r\n"}
_LINES: Mapping[int, Callable[[bytes], Any]] = {
    ord("+"): bytes,
    ord("-"): lambda line: Failure(line.decode(errors="replace")),
    ord(":"): int,
    ord(","): float,
    ord("#"): lambda line: line == b"t",
    ord("_"): lambda _: NULL,
    ord("("): int,
}


class Parser:
    """Reads one direction of one connection. With `inline`, lines without a type are commands as typed by people."""

    def __init__(self, *, inline: bool = False) -> None:
        self._unread = bytearray()
        self._needed = 1
        self._inline = inline

    def feed(self, data: bytes) -> Iterator[tuple[Any, bytes]]:
        """The values that are complete now, each with its bytes."""
        self._unread += data
        while self._unread and len(self._unread) >= self._needed:
            try:
                value, end = self._value(0)
            except _Incomplete as more:
                self._needed = more.needed
                return
            raw = bytes(self._unread[:end])
            del self._unread[:end]
            self._needed = 1
            yield value, raw

    def rest(self) -> bytes:
        """What was fed and not given out yet; it is forgotten."""
        left = bytes(self._unread)
        self._unread.clear()
        return left

    def _value(self, at: int) -> tuple[Any, int]:
        kind = self._unread[at]
        line, after = self._line(at)
        if kind in _COUNTS:
            return self._aggregate(kind, line, after)
        if kind in _BULKS:
            return self._bulk(kind, line, after)
        if kind in _LINES:
            return _LINES[kind](line), after
        if self._inline:
            return bytes(self._unread[at : after - len(END)]).split(), after
        raise ProtocolError(f"not a type of RESP: {chr(kind)!r}")

    def _line(self, at: int) -> tuple[bytes, int]:
        """The line behind a type byte, and where the next begins."""
        end = self._unread.find(END, at + 1)
        if end < 0:
            if len(self._unread) - at > _LONGEST_LINE:
                raise ProtocolError("a line without an end")
            raise _Incomplete(len(self._unread) + 1)
        return bytes(self._unread[at + 1 : end]), end + len(END)

    def _bulk(self, kind: int, line: bytes, at: int) -> tuple[Any, int]:
        size = int(line)
        if size < 0:
            return None, at
        end = at + size + len(END)
        if len(self._unread) < end:
            raise _Incomplete(end)
        text = bytes(self._unread[at : at + size])
        if kind == ord("!"):
            return Failure(text.decode(errors="replace")), end
        return (text[4:] if kind == ord("=") else text), end  # a verbatim text begins with its format, `txt:`

    def _aggregate(self, kind: int, line: bytes, at: int) -> tuple[Any, int]:
        count = int(line)
        if count < 0:
            return None, at
        items = []
        for _ in range(count * _COUNTS[kind]):
            if at >= len(self._unread):
                raise _Incomplete(at + 1)
            item, at = self._value(at)
            items.append(item)
        if kind == ord("|"):  # attributes stand in front of the value that they speak of
            if at >= len(self._unread):
                raise _Incomplete(at + 1)
            return self._value(at)
        return _LISTS[kind](items), at


def encode(value: Any) -> bytes:  # noqa: PLR0911 - one line a type
    """A value as it is sent: what came in a form of RESP 3 goes in that form, texts go as bulk texts."""
    match value:
        case None:
            return b"$-1\r\n"
        case Null():
            return b"_\r\n"
        case bool():
            return b"#t\r\n" if value else b"#f\r\n"
        case int():
            return b":%d\r\n" % value
        case float():
            return b",%r\r\n" % value
        case Failure(text):
            return b"-" + text.encode() + END
        case bytes():
            return b"$%d\r\n%s\r\n" % (len(value), value)
        case Push(words):
            return b">%d\r\n" % len(words) + b"".join(map(encode, words))
        case list() | tuple():
            count = len(value) // 2 if isinstance(value, Pairs) else len(value)
            return _HEADS[type(value)] % count + b"".join(map(encode, value))
    raise TypeError(f"{type(value).__name__} can't be sent as RESP")
