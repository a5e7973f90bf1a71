"""A stub that listens for HTTP, in clear text or behind TLS, with the caller's certificate in the record.

`close` cuts all connections and closes the port, as a crash would; `open` listens on the same port again. A connection
whose handshake began before the `close` is hung up and not recorded: to the check the stub was gone.

How long a handshake took is part of the record of the first call after it. A connection that is open but not used for
a while is no slow handshake.
"""

import asyncio
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, TypeVar

from aiohttp import web
from cryptography import x509
from multidict import CIMultiDict

from holdfast.check.timeline import Moment
from holdfast.conformance.shared.ports import kept_port
from holdfast.conformance.shared.stub import Call, Stub
from holdfast.conformance.shared.wire import parse_body
from holdfast.conformance.shared.work import Work

# Instead of zero, which aiohttp takes for "no limit".
_AT_ONCE = 0.001


@dataclass
class HttpCall(Call):
    """One HTTP call; `body` has no members unless it was a JSON object. Names of `headers` compare without case."""

    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: x509.Certificate | None = None
    # Names of headers that a verdict may rest on, so that the transcript shows them.
    telling: Sequence[str] = ()

    def describe(self) -> str:
        marks = [f"[{name}: {self.headers[name]}]" for name in self.telling if name in self.headers]
        return " ".join([self.method, super().describe(), *marks])


H = TypeVar("H", bound=HttpCall)


class HttpStub(Stub[H]):
    """`endpoint` is its URL once it is open. `call` is the spec's kind of call, `telling` its telling headers."""

    call: ClassVar[type[HttpCall]] = HttpCall

    def __init__(self, work: Work, name: str, deadline: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(work, name, deadline)
        self.endpoint = ""
        self.telling: Sequence[str] = ()
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._handler: _TimedServer | None = None
        self._port = 0
        # Counts opens and closes, so that a handshake from before a close can be recognised.
        self._opened = 0

    async def open(self) -> None:
        """Listens; after a `close`, on the same port again, which is kept meanwhile."""
        harness = self._work.context.target.harness
        self._port = self._port or kept_port(self._work.context)
        self._opened += 1
        self._handler = _TimedServer(partial(self._serve, self._opened))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            self._handler, harness["bind"], self._port, ssl=self._tls, reuse_port=True
        )
        self.endpoint = f"{'https' if self._tls else 'http'}://{harness['advertise']}:{self._port}"

    async def close(self) -> Moment:
        """Closes the port and cuts every connection; returns when."""
        asked = time.monotonic()
        if self._server is not None and self._handler is not None:
            self._opened += 1
            self._server.close()
            await self._handler.shutdown(_AT_ONCE)
            self._server = self._handler = None
        return Moment(asked, time.monotonic())

    async def _serve(self, opened: int, request: web.BaseRequest) -> web.StreamResponse:
        if opened != self._opened:  # its TLS handshake began before the port was closed
            return _hung_up(request)
        body = parse_body(await request.read())[0]
        call: H = self.call(  # type: ignore[assignment]  # `call` is this H
            time.monotonic(),
            request.path,
            body if isinstance(body, dict) else {},
            request.method,
            CIMultiDict(request.headers),
            _certificate(request),
            self.telling,
            opening=self._handler.opening(request) if self._handler else 0.0,
        )
        reply = await self.take(call)
        return _hung_up(request) if reply.hangs_up else web.json_response(dict(reply.body), status=reply.status)


class _TimedServer(web.Server):
    """Knows how long the handshake of each connection took, from its accept until it could carry a request."""

    def __init__(self, handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handler)
        self._accepted: dict[web.RequestHandler, float] = {}
        self._took: dict[web.RequestHandler, float] = {}

    def __call__(self) -> web.RequestHandler:
        protocol = super().__call__()  # the loop asks for one as soon as it has accepted a connection
        self._accepted[protocol] = time.monotonic()
        return protocol

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        self._took[handler] = time.monotonic() - self._accepted.pop(handler)
        super().connection_made(handler, transport)

    def opening(self, request: web.BaseRequest) -> float:
        """Returns the seconds that the connection of this request took; 0 for all but the first on it."""
        return self._took.pop(request.protocol, 0.0)


def _hung_up(request: web.BaseRequest) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _certificate(request: web.BaseRequest) -> x509.Certificate | None:
    tls: Any = request.get_extra_info("ssl_object")
    der = tls.getpeercert(binary_form=True) if tls is not None else None
    return x509.load_der_x509_certificate(der) if der else None
