"""Frames of a server in any dialect are the same messages."""

import json
import struct
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from holdfast.reference.shared.stranger.frames import Frames
from holdfast.reference.shared.stranger.traits import draw_traits
from tests.reference.shared.stranger.test_jsontext import NAMES, without_unknown


def frame(opcode: int, payload: bytes) -> bytes:
    """One unmasked frame that ends its message, of any length."""
    if len(payload) < 126:
        return bytes((0x80 | opcode, len(payload))) + payload
    if len(payload) < 1 << 16:
        return bytes((0x80 | opcode, 126)) + struct.pack("!H", len(payload)) + payload
    return bytes((0x80 | opcode, 127)) + struct.pack("!Q", len(payload)) + payload


def messages(raw: bytes) -> list[tuple[int, bytes]]:
    """Opcode and payload of each message, its fragments joined."""
    found: list[tuple[int, bytes]] = []
    while raw:
        size, begin = raw[1] & 0x7F, 2
        if size == 126:
            (size,), begin = struct.unpack("!H", raw[2:4]), 4
        elif size == 127:
            (size,), begin = struct.unpack("!Q", raw[2:10]), 10
        if opcode := raw[0] & 0x0F:
            found.append((opcode, raw[begin : begin + size]))
        else:
            found[-1] = (found[-1][0], found[-1][1] + raw[begin : begin + size])
        raw = raw[begin + size :]
    return found


@given(NAMES, st.lists(st.dictionaries(st.text(), st.text() | st.integers(0, 99)), max_size=3), st.integers(1, 300))
def test_messages_stay_and_control_frames_pass(name: str, values: list[dict[str, Any]], step: int) -> None:
    frames = Frames(draw_traits(name))
    raw = b"".join(frame(1, json.dumps(value).encode()) for value in values) + frame(9, b"?") + frame(8, b"\x03\xe8")
    said = b"".join(each for at in range(0, len(raw), step) for each in frames.feed(raw[at : at + step]))
    *texts, ping, close = messages(said)
    assert [without_unknown(json.loads(text)) for _, text in texts] == [without_unknown(each) for each in values]
    assert (ping, close) == ((9, b"?"), (8, b"\x03\xe8"))


def test_a_long_message_has_its_whole_length() -> None:
    for size in (10, 200, 70_000):
        said = b"".join(Frames(draw_traits("1:a#1")).feed(frame(1, json.dumps("x" * size).encode())))
        ((_, text),) = messages(said)
        assert json.loads(text) == "x" * size
