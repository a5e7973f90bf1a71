"""Canaries for UDP links: a socket of our own that sends numbered questions and notes what comes back for each.

A datagram may be lost, doubled, overtaken or altered without anyone telling, so one question proves little. Many are
sent, each with a number that its answer repeats, and the tally of the answers is what is seen of the link. One canary
is one flow of the link; its numbers go on from question to question, so an answer that comes late is not taken for one
to a later question.

What is asked:

- QUIC: an Initial of a version that nobody speaks. Every server answers with the versions that it speaks, keeps nothing
  for it, and repeats both connection ids, of which one holds the number (RFC 9000, section 6.1).
- UDP: some bytes, which an echo server sends back. Of other protocols we know nothing to ask.
"""

import asyncio
import os
import struct
import time
from dataclasses import dataclass
from typing import Protocol

from holdfast.target.link_urls import Wire

PACE = 0.001  # seconds between two sends
MANY = 400  # above this several are sent at a time
# After the last answer, this long for copies of it.
LINGER = 0.05
_SMALLEST_INITIAL = 1200
_NOBODYS_VERSION = b"\x6a\x7a\x8a\x9a"
_NUMBER = struct.Struct(">II")
_ALL_BITS = 0xFFFFFFFF
_ECHOED = 64


@dataclass
class Tally:
    """What came back for a number of questions; times are seconds from question to answer."""

    sent: int = 0
    answered: int = 0
    again: int = 0  # answers to a question that was answered before
    overtaken: int = 0  # answers that came after the answer to a later question
    damaged: int = 0  # datagrams that are no answer to anything
    quickest: float = 0.0
    slowest: float = 0.0
    sending: float = 0.0  # from the first question to the last
    up: int = 0  # bytes of the questions, and of the answers
    down: int = 0

    @property
    def lost(self) -> int:
        return self.sent - self.answered

    def describe(self) -> str:
        words = [f"{self.answered} of {self.sent} answered"]
        words += [
            f"{count} {word}"
            for count, word in ((self.again, "twice"), (self.overtaken, "overtaken"), (self.damaged, "damaged"))
            if count
        ]
        if self.answered:
            words.append(f"after {self.quickest * 1000:.0f} to {self.slowest * 1000:.0f} ms")
        return ", ".join(words)


class DatagramQuestion(Protocol):
    def request(self, number: int) -> bytes: ...

    def number(self, answer: bytes) -> int | None:
        """Return which request this answers; None if it is damaged."""


class QuicQuestion:
    def __init__(self) -> None:
        self._us, self._marked = os.urandom(16), os.urandom(8)

    def request(self, number: int) -> bytes:
        them = self._marked + _packed(number)
        head = b"\xc0" + _NOBODYS_VERSION + _counted(them) + _counted(self._us) + b"\x00"  # no token
        rest = _SMALLEST_INITIAL - len(head) - 2
        return head + struct.pack(">H", 0x4000 | rest) + bytes(rest)

    def number(self, answer: bytes) -> int | None:
        begins = bytes(4) + _counted(self._us) + bytes([len(self._marked) + _NUMBER.size]) + self._marked
        place = 1 + len(begins)
        versions = answer[place + _NUMBER.size :]
        if not answer or not answer[0] & 0x80 or answer[1:place] != begins or not versions or len(versions) % 4:
            return None
        return _unpacked(answer, place)


class EchoQuestion:
    def __init__(self) -> None:
        self._marked = os.urandom(_ECHOED)

    def request(self, number: int) -> bytes:
        return self._marked + _packed(number)

    def number(self, answer: bytes) -> int | None:
        if len(answer) != _ECHOED + _NUMBER.size or not answer.startswith(self._marked):
            return None
        return _unpacked(answer, _ECHOED)


def datagram_question(wire: Wire) -> DatagramQuestion:
    return QuicQuestion() if wire is Wire.QUIC else EchoQuestion()


def _packed(number: int) -> bytes:
    """Write a number and its complement, so that one flipped bit does not make another number of it."""
    return _NUMBER.pack(number, number ^ _ALL_BITS)


def _unpacked(data: bytes, place: int) -> int | None:
    number, complement = _NUMBER.unpack_from(data, place)
    return int(number) if number == complement ^ _ALL_BITS else None


def _counted(data: bytes) -> bytes:
    return bytes([len(data)]) + data


class DatagramCanary(asyncio.DatagramProtocol):
    """One flow through a link, used for one `ask` at a time."""

    def __init__(self, port: int, question: DatagramQuestion) -> None:
        self._port = port
        self._question = question
        self._transport: asyncio.DatagramTransport | None = None
        self._next = 0
        self._came: list[tuple[float, bytes]] = []
        self._more = asyncio.Event()

    async def ask(self, times: int, within: float, at_once: int = 1) -> Tally:
        """Send `times` questions; return what came back `within` seconds after the last, or as soon as all have."""
        transport = await self._open()
        self._came.clear()
        sent: dict[int, float] = {}
        up, group = 0, max(at_once, times // MANY + 1)
        for count in range(1, times + 1):
            request = self._question.request(self._next)
            sent[self._next] = time.monotonic()
            transport.sendto(request)
            self._next += 1
            up += len(request)
            if count % group == 0:
                await asyncio.sleep(PACE)
        sending = time.monotonic() - min(sent.values())
        await self._answers(sent, within)
        tally = self._tally(sent)
        tally.up, tally.sending = up, sending
        return tally

    def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
            self._transport = None

    def datagram_received(self, data: bytes, _: object) -> None:
        self._came.append((time.monotonic(), data))
        self._more.set()

    def error_received(self, _: Exception) -> None:
        """Ignore ICMP errors: they say that nobody listens, which no answer says as well."""

    async def _open(self) -> asyncio.DatagramTransport:
        if self._transport is None:
            loop = asyncio.get_running_loop()
            self._transport, _ = await loop.create_datagram_endpoint(
                lambda: self, remote_addr=("127.0.0.1", self._port)
            )
        return self._transport

    async def _answers(self, sent: dict[int, float], within: float) -> None:
        """Wait until every question is answered, and then for copies of the last answers."""
        end, open_, seen = time.monotonic() + within, set(sent), 0
        while open_ and (left := end - time.monotonic()) > 0:
            self._more.clear()
            open_ -= {self._question.number(data) for _, data in self._came[seen:]}
            seen = len(self._came)
            if open_:
                try:
                    await asyncio.wait_for(self._more.wait(), left)
                except TimeoutError:
                    return
        await asyncio.sleep(LINGER)

    def _tally(self, sent: dict[int, float]) -> Tally:
        tally, first, highest = Tally(sent=len(sent)), dict[int, float](), -1
        for came, data in self._came:
            number = self._question.number(data)
            if number is None:
                tally.damaged += 1
            elif number in first:
                tally.again += 1
            elif number in sent:  # else it answers an earlier `ask`
                first[number] = came - sent[number]
                tally.overtaken += number < highest
                tally.down += len(data)
            highest = max(highest, number or 0)
        tally.answered = len(first)
        tally.quickest, tally.slowest = min(first.values(), default=0.0), max(first.values(), default=0.0)
        return tally
