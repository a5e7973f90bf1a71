"""WebSocket frames of a server in another form that means the same: JSON rewritten, a message in several frames.

RFC 6455 5.4 lets a sender fragment a message as it likes, also in the middle of a character. Control frames, binary
frames and compressed ones go through as they are.
"""

import struct

from holdfast.reference.shared.stranger.jsontext import rewritten
from holdfast.reference.shared.stranger.traits import Traits

FINAL, TEXT, CONTINUATION = 0x80, 0x1, 0x0


class Frames:
    def __init__(self, traits: Traits) -> None:
        self._traits = traits
        self._buffer = b""

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        said: list[bytes] = []
        while (frame := _first_frame(self._buffer)) is not None:
            begin, end = frame
            whole, self._buffer = self._buffer[:end], self._buffer[end:]
            said.append(self._say(whole[begin:]) if whole[0] == FINAL | TEXT else whole)
        return said

    def _say(self, payload: bytes) -> bytes:
        text = rewritten(payload, self._traits)
        if self._traits.frames == "whole" or not text:
            return _frame(FINAL | TEXT, text)
        middle = len(text) // 2
        return _frame(TEXT, text[:middle]) + _frame(FINAL | CONTINUATION, text[middle:])


def _first_frame(raw: bytes) -> tuple[int, int] | None:
    """Returns where the payload of the first frame begins and ends; None while it is not complete.

    Frames of a server are not masked.
    """
    if len(raw) < 2:
        return None
    size, begin = raw[1] & 0x7F, 2
    if size >= 126:
        form, begin = ("!H", 4) if size == 126 else ("!Q", 10)
        if len(raw) < begin:
            return None
        (size,) = struct.unpack(form, raw[2:begin])
    return (begin, begin + size) if len(raw) >= begin + size else None


def _frame(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        return bytes((first, size)) + payload
    return (
        struct.pack("!BBH", first, 126, size) if size < 1 << 16 else struct.pack("!BBQ", first, 127, size)
    ) + payload
