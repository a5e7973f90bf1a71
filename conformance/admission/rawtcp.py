"""Sends bytes that no client library would send: malformed requests and WebSocket frames.

The answers are read by the driver's codec like all others.
"""

from collections.abc import Sequence

from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.http import any_certificate


async def exchange(
    admission: Admission, pieces: Sequence[bytes], *, pause: float = 0.0, last: bool = False, break_off: bool = False
) -> Answer:
    """Sends the pieces to the first node; returns the answer, status 0 if there was none."""
    within, url = admission.answer_timeout, admission.url()
    tls = any_certificate() if url.startswith("https") else None
    return await admission.raw_exchange(
        url, pieces, within=within, tls=tls, pause=pause, last=last, break_off=break_off
    )


def frame(
    opcode: int, payload: bytes = b"", *, first: int = 0x80, masked: bool = True, claim: int | None = None
) -> bytes:
    """Returns one WebSocket frame. `first` holds FIN and the reserved bits; `claim` is the length in its header."""
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
