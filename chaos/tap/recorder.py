"""Notes what passes on one connection to a Redis: commands, the replies to them, and pushes.

Replies come in the order of the commands, so each is matched with the oldest command that waits for one. Subscriptions
are answered by pushes, one a channel, and wait for nothing; after MONITOR every line is a push. Commands between MULTI
and EXEC carry the number of their transaction. A script is known by the SHA-1 of its text, which EVALSHA names and
which EVAL and SCRIPT LOAD let us compute.

A connection that does not speak RESP (TLS, another protocol) is noted once as such, and its bytes pass unread.
"""

import hashlib
import itertools
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from holdfast.chaos.tap.resp import Failure, Null, Parser, ProtocolError, Push

Note = dict[str, Any]
# A note is for people and for questions about names; of a long value the beginning is enough.
LONGEST_WORD = 512
MOST_WORDS = 64
_SUBSCRIBES = {b"SUBSCRIBE", b"UNSUBSCRIBE", b"PSUBSCRIBE", b"PUNSUBSCRIBE", b"SSUBSCRIBE", b"SUNSUBSCRIBE"}
_PUSHES = {word.lower() for word in _SUBSCRIBES} | {b"message", b"pmessage", b"smessage"}


class Recorder:
    """One connection; `write` takes each note."""

    def __init__(self, link: str, connection: int, write: Callable[[Note], None]) -> None:
        self._common = {"link": link, "connection": connection}
        self._write = write
        self._up, self._down = Parser(inline=True), Parser()
        self._numbers = itertools.count(1)
        self._waiting: deque[int] = deque()
        self._transactions = itertools.count(1)
        self._transaction: int | None = None
        self._subscribed = False
        self._monitors = False
        self._blind = False

    def up(self, data: bytes) -> None:
        self._read(self._up, data, self._command)

    def down(self, data: bytes) -> None:
        self._read(self._down, data, self._answer)

    def closed(self) -> None:
        self._note("closed")

    def _read(self, parser: Parser, data: bytes, take: Callable[[Any], None]) -> None:
        if self._blind:
            return
        try:
            for value, _ in parser.feed(data):
                take(value)
        except (ProtocolError, ValueError, IndexError, RecursionError) as error:
            self._blind = True
            self._note("unreadable", text=str(error)[:LONGEST_WORD])

    def _command(self, value: Any) -> None:
        words: list[bytes] = [word if isinstance(word, bytes) else b"" for word in value] if value else []
        if not words:
            return
        name, number = words[0].upper(), next(self._numbers)
        if name == b"MULTI":
            self._transaction = next(self._transactions)
        more: Note = {"script": sha} if (sha := _script(name, words)) else {}
        self._note("command", number=number, words=shortened(words), transaction=self._transaction, **more)
        if name in (b"EXEC", b"DISCARD", b"RESET"):
            self._transaction = None
        if name in _SUBSCRIBES:
            self._subscribed = True
            return
        self._monitors = self._monitors or name == b"MONITOR"
        self._waiting.append(number)

    def _answer(self, value: Any) -> None:
        if isinstance(value, Push):
            self._note("push", words=shortened(value.words))
        elif self._subscribed and isinstance(value, list) and value and value[0] in _PUSHES:
            self._note("push", words=shortened(value))
        elif self._waiting:
            self._note("reply", number=self._waiting.popleft(), value=_short(value))
        elif self._monitors:
            self._note("push", words=shortened([value]))
        else:
            self._note("reply", number=0, value=_short(value))

    def _note(self, kind: str, **fields: Any) -> None:
        self._write({"at": time.monotonic(), "kind": kind, **self._common, **fields})


def _script(name: bytes, words: Sequence[bytes]) -> str:
    """The SHA-1 of the script that a command runs or loads; empty for other commands."""
    match name:
        case b"EVALSHA" | b"EVALSHA_RO" if len(words) > 1:
            return words[1].decode(errors="replace").lower()
        case b"EVAL" | b"EVAL_RO" if len(words) > 1:
            return hashlib.sha1(words[1], usedforsecurity=False).hexdigest()
        case b"SCRIPT" if len(words) > 2 and words[1].upper() == b"LOAD":
            return hashlib.sha1(words[2], usedforsecurity=False).hexdigest()
    return ""


def shortened(words: Sequence[Any]) -> list[Any]:
    kept = [_short(word) for word in words[:MOST_WORDS]]
    return [*kept, f"… and {len(words) - MOST_WORDS} more"] if len(words) > MOST_WORDS else kept


def _short(value: Any) -> Any:
    match value:
        case bytes():
            text = value[:LONGEST_WORD].decode(errors="backslashreplace")
            return text if len(value) <= LONGEST_WORD else f"{text}… and {len(value) - LONGEST_WORD} more bytes"
        case Failure(text):
            return {"error": text[:LONGEST_WORD]}
        case Push(words):
            return shortened(words)
        case list():
            return shortened(value)
        case Null():
            return None
    return value
