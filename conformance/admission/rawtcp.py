"""Bytes that no client library would send: requests written by hand, WebSocket frames out of line."""

import time
from collections.abc import Sequence

from holdfast import byhand
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.wire import Answer, parse_body


async def exchange(
    admission: Admission, pieces: Sequence[bytes], *, pause: float = 0.0, last: bool = False, break_off: bool = False
) -> Answer:
    """As `byhand.exchange`, to the first node; status 0 when the connection just ended."""
    sent = time.monotonic()
    heard = await byhand.exchange(
        admission.context,
        admission.url(),
        pieces,
        patience=admission.patience,
        pause=pause,
        last=last,
        break_off=break_off,
    )
    body, text = parse_body(heard.body) if heard.status else (None, heard.note)
    answer = Answer(heard.status, heard.headers, body, text, sent, time.monotonic())
    admission.context.transcript.received(answer.describe())
    return answer


def frame(
    opcode: int, payload: bytes = b"", *, first: int = 0x80, masked: bool = True, claim: int | None = None
) -> bytes:
    """One WebSocket frame. `first` holds FIN and the reserved bits; `claim` is the length that it pretends to have."""
    length = len(payload) if claim is None else claim
    mask = 0x80 if masked else 0
    if length < 126:
        size = bytes([mask | length])
    elif length < 1 << 16:
        size = bytes([mask | 126]) + length.to_bytes(2)
    else:
        size = bytes([mask | 127]) + length.to_bytes(8)
    # A mask of zeros leaves the payload as it is.
    return bytes([first | opcode]) + size + (bytes(4) if masked else b"") + payload
