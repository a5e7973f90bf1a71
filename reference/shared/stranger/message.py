"""One HTTP/1.x message for another that means the same. Pure: bytes in, bytes out, no connection anywhere.

A `Speaker` gets what an HTTP library writes to one connection, in whatever pieces, and gives back what is to be written
instead, as the pieces in which to write it. It follows the messages only as far as it must: heads are parsed, bodies
are collected whole (their framing may change), and everything behind a point where HTTP ends goes through untouched:
behind CONNECT and behind a body that only the end of the connection ends. Behind an upgrade to WebSocket come frames
(`frames.py`).

Two things it can't see, so it is told: whether the answer is one to HEAD, whose length belongs to no body
(`to_head`), and whether the connection is going to end behind an answer. The latter is what the library says with
`Connection: close`; a dialect says the same in its own way (`ending`).
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from holdfast.reference.shared.stranger.frames import Frames
from holdfast.reference.shared.stranger.jsontext import rewritten
from holdfast.reference.shared.stranger.traits import Traits

Header = tuple[str, str]
FRAMING = {"content-length", "transfer-encoding"}
NAMED = "X-Dialect"
"""The header that says which dialect a message is in, for whoever reads a transcript."""


@dataclass(frozen=True)
class Message:
    """A head and its whole body. `first` is the start line, in three parts."""

    first: tuple[str, str, str]
    headers: tuple[Header, ...]
    body: bytes

    @property
    def is_answer(self) -> bool:
        return self.first[0].startswith("HTTP/")

    @property
    def status(self) -> int:
        return int(self.first[1]) if self.is_answer else 0

    @property
    def version(self) -> str:
        return self.first[0 if self.is_answer else 2]

    def get(self, name: str) -> str | None:
        return next((value for each, value in self.headers if each.lower() == name), None)

    def says(self, name: str, word: str) -> bool:
        return word in (self.get(name) or "").lower()

    def without(self, *names: str) -> "Message":
        return replace(self, headers=tuple(each for each in self.headers if each[0].lower() not in names))

    def adding(self, *headers: Header) -> "Message":
        return replace(self, headers=(*self.headers, *headers))

    def spoken(self, version: str) -> "Message":
        first, second, third = self.first
        return replace(self, first=(version, second, third) if self.is_answer else (first, second, version))


class Speaker:
    """What one side of one connection says, in this dialect.

    With `redraw` every message but the first is in another one: a node calls over few connections and keeps them, so
    its peers would hear too little otherwise.
    """

    def __init__(self, traits: Traits, redraw: Callable[[], Traits] | None = None) -> None:
        self.traits = traits
        self._redraw = redraw
        self.to_head = False
        self.untouched = False
        self._draw = random.Random(f"{traits.name} speaks")
        self._buffer = b""
        self._frames: Frames | None = None

    def feed(self, data: bytes) -> list[bytes]:
        """Takes what the library writes; returns what to write instead, once a message is complete."""
        self._buffer += data
        said: list[bytes] = []
        while self._buffer:
            if self.untouched or self._frames:
                raw, self._buffer = self._buffer, b""
                said += self._frames.feed(raw) if self._frames else [raw]
            elif (message := self._message()) is None:
                break
            else:
                said += self._say(message)
        return said

    def _message(self) -> Message | None:
        """Takes one whole message from the buffer, or only the head where the body has no end of its own."""
        head, end, rest = self._buffer.partition(b"\r\n\r\n")
        if not end:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        parts = (*first.split(" ", 2), "", "")
        message = Message((parts[0], parts[1], parts[2]), tuple(_header(line) for line in lines), b"")
        body = self._body(message, rest)
        if body is None:
            return None
        self._buffer = rest[body[1] :]
        return replace(message, body=body[0])

    def _body(self, message: Message, rest: bytes) -> tuple[bytes, int] | None:
        """Returns the body and where it ends in `rest`; None while it is not complete."""
        if message.is_answer and (self.to_head or message.status < 200 or message.status in {204, 304}):
            return b"", 0
        if message.says("transfer-encoding", "chunked"):
            return _unchunked(rest)
        length = message.get("content-length")
        if length is None and message.is_answer:
            self.untouched = True  # it ends with the connection
        size = int(length or 0)
        return (rest[:size], size) if len(rest) >= size else None

    def _say(self, message: Message) -> list[bytes]:
        if message.first[0] == "CONNECT":
            self.untouched = True
        if self.untouched:
            return [_written(message, Traits(""))]
        if message.status == 101:
            self._frames = Frames(self.traits)
        elif not 100 <= message.status < 200:
            to_head, self.to_head = self.to_head, False
            message = message if to_head else self._framed(self._ended(self._bodied(message)))
        message = message.without("server").adding((NAMED, self.traits.name))
        said = self._pieces(_written(self._ordered(message), self.traits), message)
        self.traits = self._redraw() if self._redraw else self.traits
        return said

    def _bodied(self, message: Message) -> Message:
        kind = message.get("content-type") or ""
        if kind.partition(";")[0].strip().lower() != "application/json" or message.get("content-encoding"):
            return message
        if self.traits.media_type == "charset" and ";" not in kind:
            message = message.without("content-type").adding(("Content-Type", "application/json; charset=utf-8"))
        if not message.body:
            return message
        return replace(message, body=rewritten(message.body, self.traits, deep=message.is_answer))

    def _ended(self, message: Message) -> Message:
        """Says that the connection ends here. An answer only says it in its own way, a caller may decide it."""
        if message.is_answer:
            ends = message.says("connection", "close")
            return message.spoken("HTTP/1.0") if ends and self.traits.ending == "HTTP/1.0" else message
        if self.traits.ending in {"close", "HTTP/1.0"}:
            message = message.without("connection").adding(("Connection", "close"))
        return message.spoken("HTTP/1.0") if self.traits.ending == "HTTP/1.0" else message

    def _framed(self, message: Message) -> Message:
        had = any(message.get(name) is not None for name in FRAMING)
        bare = message.without(*FRAMING)
        if not had or message.status in {204, 304}:
            return bare
        framing = self.traits.framing
        if framing == "chunked" and message.version == "HTTP/1.1":
            return replace(bare, body=self._chunked(message.body)).adding(("Transfer-Encoding", "chunked"))
        if framing == "until close" and message.is_answer and message.says("connection", "close"):
            return bare
        return bare.adding(("Content-Length", str(len(message.body))))

    def _chunked(self, body: bytes) -> bytes:
        pieces = [body] if self.traits.chunks == "one" else self._cut(body)
        extension = b";part=1" if self.traits.chunks == "extended" else b""
        return b"".join(b"%X%b\r\n%b\r\n" % (len(each), extension, each) for each in pieces if each) + b"0\r\n\r\n"

    def _ordered(self, message: Message) -> Message:
        """Orders the headers; those of one name stay in their order, which has a meaning."""
        if self.traits.order == "as written":
            return message
        names = sorted({name.lower() for name, _ in message.headers})
        if self.traits.order == "shuffled":
            self._draw.shuffle(names)
        return replace(message, headers=tuple(sorted(message.headers, key=lambda each: names.index(each[0].lower()))))

    def _pieces(self, raw: bytes, message: Message) -> list[bytes]:
        if self.traits.writes == "pieces":
            return self._cut(raw)
        head = len(raw) - len(message.body)
        return [raw[:head], raw[head:]] if self.traits.writes == "head first" and message.body else [raw]

    def _cut(self, raw: bytes) -> list[bytes]:
        places = sorted(self._draw.randint(1, len(raw)) for _ in range(3)) if raw else []
        return [raw[begin:end] for begin, end in zip([0, *places], [*places, len(raw)], strict=True) if begin < end]


def _header(line: str) -> Header:
    name, _, value = line.partition(":")
    return name, value.strip(" \t")


def _written(message: Message, traits: Traits) -> bytes:
    first, second, third = message.first
    if message.is_answer and traits.phrase == "empty":
        third = ""
    lines = [f"{first} {second} {third}", *(f"{_cased(n, traits.case)}{traits.colon}{v}" for n, v in message.headers)]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + message.body


def _cased(name: str, case: str) -> str:
    if case == "canonical":  # as Go: a capital behind each dash and nowhere else
        return "-".join(part.capitalize() for part in name.split("-"))
    return name.lower() if case == "lower" else name


def _unchunked(rest: bytes) -> tuple[bytes, int] | None:
    body, place = b"", 0
    while (line := rest.find(b"\r\n", place)) >= 0:
        size = int(rest[place:line].partition(b";")[0], 16)
        place = line + 2 + size + 2
        if len(rest) < place:
            return None
        if size == 0:
            return body, place
        body += rest[line + 2 : line + 2 + size]
    return None
