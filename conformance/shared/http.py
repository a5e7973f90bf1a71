"""The HTTP side of a driver: one call, noted in the transcript, that always returns an answer.

`exchange` sends one request and returns the spec's own kind of `Answer`; status 0 means that there was none, and its
text says how it ended. The time to wait is the caller's, shortened by the kernel once a target has proven silent
(`Context.call`). `converse` puts an exchange into the transcript and tells the listeners: a contract check listens to
every answer of its driver.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Generic, TypeVar

import aiohttp

from holdfast.check import raw_http
from holdfast.check.context import Context
from holdfast.check.finding import Finding
from holdfast.check.no_answer import how_it_ended
from holdfast.check.observe import Metrics
from holdfast.check.spectime import SpecTime
from holdfast.check.transcript import Words
from holdfast.conformance.shared.driver import Driver
from holdfast.conformance.shared.wire import Answer, Request, parse_body
from holdfast.target.deployment import Deployment

A = TypeVar("A", bound=Answer)
# Seconds for which a connection may lie unused before the next call opens another. A server may end an idle one at any
# moment (RFC 9112 9.5), and a call that crosses its end fails without anybody's fault. Some do so within a second.
IDLE_AT_MOST = 0.4
# What else a spec notes of a call that ended with this error.
Failure = Callable[[Exception], Mapping[str, Any]]


async def _hear_what_has_ended() -> None:
    """Lets the loop read what has arrived, so that no call goes over a connection whose end waits to be read.

    Where our own loop stalls it takes a connection for open long after the server has ended it. A task that gives way
    once comes before what the loop finds to read then; when it gives way again, it comes after that.
    """
    for _ in range(3):  # once more for TLS, which hears of it a turn later
        await asyncio.sleep(0)


def _no_more(_error: Exception) -> Mapping[str, Any]:
    return {}


def any_certificate() -> ssl.SSLContext:
    """Returns a context that takes every certificate, for checks that do not judge who signed it."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class HttpDriver(Driver, Generic[A]):
    """A driver whose target speaks HTTP. `answer` is the spec's kind of answer."""

    answer: ClassVar[type[Answer]]

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.listeners: list[Callable[[Request, A], None]] = []

    async def converse(self, words: Words, request: Request, exchange: Awaitable[A]) -> A:
        """Notes the request and its answer in the transcript, tells the listeners, and returns the answer."""
        self.context.transcript.sent(words)
        answer = self.understood(request, await exchange)
        self.context.transcript.received(answer.describe)
        for listener in self.listeners:
            listener(request, answer)
        return answer

    def understood(self, _request: Request, answer: A) -> A:
        """Returns an answer in the words of the contract; called before it is written into the transcript."""
        return answer

    async def exchange(
        self,
        session: Callable[[], aiohttp.ClientSession],
        base: str,
        request: Request,
        *,
        within: float,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
        failure: Failure = _no_more,
    ) -> A:
        """Sends the request, with `data` as its body if given; returns the answer after `within` seconds at most.

        What goes wrong in making the session, such as a bad certificate, is the end of this call too.
        """
        await _hear_what_has_ended()
        sent = time.monotonic()
        body: dict[str, Any] = {"data": data} if data is not None else {}
        if data is None and request.body is not None:
            body = {"json": request.body}
        try:
            with self.context.call(within) as seconds:
                async with session().request(
                    request.method,
                    base + request.path,
                    params=request.query or None,
                    headers=request.headers if headers is None else headers,
                    timeout=aiohttp.ClientTimeout(total=seconds),
                    allow_redirects=False,
                    **body,
                ) as reply:
                    return self.answered(reply.status, reply.headers, await reply.read(), sent)
        except TimeoutError:
            return self.unanswered(f"after {time.monotonic() - sent:.1f} s", sent)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return self.unanswered(how_it_ended(error), sent, **failure(error))

    async def raw_exchange(
        self,
        url: str,
        pieces: Sequence[bytes],
        *,
        within: float,
        tls: ssl.SSLContext | None = None,
        pause: float = 0.0,
        last: bool = False,
        break_off: bool = False,
    ) -> A:
        """Sends bytes that no client library would send (see `raw_http.exchange`); returns the answer."""
        sent = time.monotonic()
        raw = await raw_http.exchange(
            self.context, url, pieces, within=within, tls=tls, pause=pause, last=last, break_off=break_off
        )
        if raw.status:
            answer = self.answered(raw.status, raw.headers, raw.body, sent)
        else:
            answer = self.unanswered(raw.note, sent)
        self.context.transcript.received(answer.describe())
        return answer

    def answered(self, status: int, headers: Mapping[str, str], raw: bytes, sent: float) -> A:
        body, text = parse_body(raw)
        return self._made(status, headers, body, text, sent)

    def unanswered(self, how: str, sent: float, **more: Any) -> A:
        return self._made(0, {}, None, how, sent, **more)

    def _made(self, status: int, headers: Mapping[str, str], body: Any, text: str, sent: float, **more: Any) -> A:
        made: A = self.answer(status, headers, body, text, sent, time.monotonic(), time.time(), **more)  # type: ignore[assignment]  # `answer` is this A
        return made

    async def scrape(self, answer: Awaitable[Answer]) -> Metrics:
        """Reads the answer of a metrics endpoint. Raises Finding unless it is Prometheus text."""
        seen = await answer
        if seen.status != 200:
            raise Finding(["200 with Prometheus text"], seen.describe())
        return Metrics.parse(seen.text)
