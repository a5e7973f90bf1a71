"""What a canary asks through a TCP link, for each protocol that may be behind it.

A question is one that any server of the protocol answers at once. Canaries need no credentials and leave little behind:
a key of their own that expires after a minute, a request for an unknown path, a gRPC call that any server answers with
some status, a TLS handshake that is not finished.
"""

import contextlib
import re
import ssl
import struct
import uuid
from collections.abc import Callable
from typing import Protocol

from holdfast.target.link_urls import Wire

TLS_RECORD_HEAD = 5
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ")
ECHOED = 1000


class Question(Protocol):
    """A request that any server of the protocol answers at once, and how its answers end."""

    def request(self) -> bytes: ...

    def complete(self, answer: bytes, times: int = 1) -> bool:
        """Return whether `answer` answers `times` requests."""


class RedisQuestion:
    """A SET with a fresh value, so that a look past the link can tell whether it was run."""

    def __init__(self) -> None:
        self.key = f"holdfast:canary:{uuid.uuid4().hex}"
        self.value = ""

    def request(self) -> bytes:
        self.value = uuid.uuid4().hex
        return f"SET {self.key} {self.value} EX 60\r\n".encode()

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return answer.count(b"\r\n") >= times


class RedisEcho:
    """A thousand bytes in each direction, enough to measure a rate."""

    def request(self) -> bytes:
        return b"ECHO " + b"x" * ECHOED + b"\r\n"

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return answer.count(b"x") >= ECHOED * times


class HttpQuestion:
    """A GET of a path that does not exist: any status line proves both directions."""

    def request(self) -> bytes:
        return b"GET /holdfast-canary HTTP/1.1\r\nHost: canary\r\n\r\n"

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return b"\r\n\r\n" in answer and len(_STATUS_LINE.findall(answer)) >= times


class TlsQuestion:
    """A TLS ClientHello, which a server answers before it wants a certificate; once per connection."""

    def request(self) -> bytes:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        flight = ssl.MemoryBIO()
        with contextlib.suppress(ssl.SSLWantReadError):
            context.wrap_bio(ssl.MemoryBIO(), flight).do_handshake()
        return flight.read()

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return len(answer) >= TLS_RECORD_HEAD * times


class SentinelQuestion:
    """A PING, which a Sentinel answers; it knows no SET."""

    def request(self) -> bytes:
        return b"PING\r\n"

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return answer.count(b"\r\n") >= times


class GrpcQuestion:
    """A call of the health service over HTTP/2; a server without one answers UNIMPLEMENTED, which is as good.

    One object is the client side of one connection: the first request begins with the preface, the second confirms the
    server's settings, and each call has the next stream. The numbers of streams begin high, so that the head of the
    frame that answers one can't be mistaken for anything else in the answer.
    """

    def __init__(self) -> None:
        self._asked = 0

    def request(self) -> bytes:
        stream = _FIRST_STREAM + 2 * self._asked
        greeting = {0: _PREFACE + _frame(_SETTINGS, 0, 0), 1: _frame(_SETTINGS, _ACK, 0)}.get(self._asked, b"")
        self._asked += 1
        call = _frame(_HEADERS, _END_HEADERS, stream, _CALL) + _frame(_DATA, _END_STREAM, stream, _EMPTY_MESSAGE)
        return greeting + call

    def complete(self, answer: bytes, times: int = 1) -> bool:
        return len(set(_ANSWERED.findall(answer))) >= times


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS = 0, 1, 3, 4
_END_STREAM = _ACK = 1
_END_HEADERS = 4
_FIRST_STREAM = 0x1DC70001
_EMPTY_MESSAGE = bytes(5)
# The head of a frame of headers, or of a reset, on one of our streams: its type, its flags, the stream.
_ANSWERED = re.compile(rb"[\x01\x03](?s:.)\x1d\xc7(?s:(..))")


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def _text(text: bytes) -> bytes:
    return bytes([len(text)]) + text


# HPACK: two headers of the static table (POST, http), then literals that are not kept.
_CALL = b"".join(
    [
        b"\x83\x86",
        b"\x04" + _text(b"/grpc.health.v1.Health/Check"),
        b"\x01" + _text(b"canary"),
        b"\x0f\x10" + _text(b"application/grpc"),
        b"\x00" + _text(b"te") + _text(b"trailers"),
    ]
)


_QUESTIONS: dict[Wire, Callable[[], Question]] = {
    Wire.HTTP: HttpQuestion,
    Wire.TLS: TlsQuestion,
    Wire.GRPC: GrpcQuestion,
    Wire.REDIS: RedisQuestion,
    Wire.SENTINEL: SentinelQuestion,
}


def question_of(wire: Wire, fault: str = "") -> Callable[[], Question]:
    """Return what to ask where this is spoken, to prove this kind of fault."""
    if wire is Wire.REDIS and fault == "rate":
        return RedisEcho
    return _QUESTIONS[wire]
