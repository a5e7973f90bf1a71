"""A node that speaks as a stranger's would: the dialects of `traits.py` on every connection that it accepts or opens.

The bytes that aiohttp writes are rewritten between aiohttp and the connection (`Tongue`), inside TLS, so the peer's
certificate stays what it was. Three things are decided above the bytes, because there they can be done properly:

- An answer is late by sleeping behind the handler, never before it: what the answer tells has happened already.
- The end of a connection behind an answer is left to aiohttp, which first reads what the caller still writes. A
  connection that is closed over unread bytes takes the answer with it.
- A caller without a certificate, where the handshake has let it pass, hears nothing at all: `Tongue` swallows every
  byte, and the connection is cut at a drawn moment, at the latest when its request is complete.
"""

import asyncio
import random
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from itertools import count
from typing import Any, cast

import aiohttp
from aiohttp import web
from aiohttp.client_proto import ResponseHandler

from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.speech import Handler, Speech
from holdfast.reference.shared.stranger.message import Speaker
from holdfast.reference.shared.stranger.traits import NodeTraits, Traits, draw_node, draw_traits, told

IDLE_SECONDS = (0.7, 2.3)
"""After how long an idle connection is closed unsaid; no period of a spec, so that few requests cross the close."""

LONGEST_PATIENCE = 0.2
"""Seconds after which a caller without a certificate is cut off at the latest, if it writes nothing."""

Bound = Callable[[str], float]
"""Path → how many seconds its answer may be late without missing any promise."""

Status = Callable[[str, str, int], int]
"""Method, path and status → another status that the contract allows for the same answer, or the same one."""


class Tongue:
    """A transport that rewrites what is written to it; everything else is the transport's own."""

    def __init__(self, transport: asyncio.BaseTransport, speaker: Speaker) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.speaker = speaker
        self.refused = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self.refused:
            for piece in self.speaker.feed(bytes(data)):
                self._transport.write(piece)

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))


class Stranger(Speech):
    """`name` is `SEED:NODE`. `late` says how late answers may be, `other_status` where a contract allows several."""

    def __init__(self, name: str, late: Bound, other_status: Status) -> None:
        self.name = name
        self.late, self.other_status = late, other_status
        self.traits: NodeTraits = draw_node(name)
        self.draw = random.Random(f"{name} decides")
        self._accepted, self._calls = count(1), count(1)

    def tell(self, events: JsonLog) -> None:
        """Logs what holds for the whole node, and the first dialects; a message names its own in X-Dialect."""
        first = [told(draw_traits(f"{self.name}{mark}1")) for mark in "#>"]
        events.emit("stranger", name=self.name, **told(self.traits), first=first)

    def server(self, handler: Handler) -> web.Server:
        return _Server(partial(self.answer, handler), self)

    def connector(self, **options: Any) -> aiohttp.TCPConnector:
        connector = aiohttp.TCPConnector(**options)
        # There is no public way to the protocol of a client's connection.
        connector._factory = partial(_Caller, self, loop=asyncio.get_running_loop())  # type: ignore[assignment]  # noqa: SLF001  # as said
        return connector

    def listener(self, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
        if context is not None:
            if self.traits.tls == "TLSv1.2":
                context.maximum_version = ssl.TLSVersion.TLSv1_2
            if self.traits.cuts and context.verify_mode == ssl.CERT_REQUIRED:
                context.verify_mode = ssl.CERT_OPTIONAL  # one that is presented is verified all the same
        return context

    def accepted(self, transport: asyncio.Transport) -> Tongue:
        tongue = Tongue(transport, Speaker(draw_traits(f"{self.name}#{next(self._accepted)}")))
        tls = transport.get_extra_info("ssl_object")
        if self.traits.cuts and tls is not None and tls.context.verify_mode == ssl.CERT_OPTIONAL:
            tongue.refused = not tls.getpeercert(binary_form=True)
        if tongue.refused:
            asyncio.get_running_loop().call_later(self.draw.choice((0.0, 0.01, LONGEST_PATIENCE)), transport.abort)
        return tongue

    def opened(self, transport: asyncio.BaseTransport) -> Tongue:
        return Tongue(transport, Speaker(self._called(), redraw=self._called))

    def _called(self) -> Traits:
        return draw_traits(f"{self.name}>{next(self._calls)}")

    async def answer(self, handler: Handler, request: web.BaseRequest) -> web.StreamResponse:
        tongue = cast("Tongue | None", request.transport)
        if tongue is None or tongue.refused:
            return await _cut_off(request)
        traits = tongue.speaker.traits
        tongue.speaker.to_head = request.method == "HEAD"
        reply = await handler(request)
        if isinstance(reply, web.WebSocketResponse):
            return reply
        if traits.late == "yes":
            await asyncio.sleep(self.draw.uniform(0.0, self.late(request.path)))
        if traits.status == "other":
            reply.set_status(self.other_status(request.method, request.path, reply.status))
        if traits.ending in {"close", "HTTP/1.0"}:
            reply.force_close()
        return reply


class _Server(web.Server):
    def __init__(self, handler: Handler, stranger: Stranger) -> None:
        super().__init__(handler, access_log=None)
        self._stranger = stranger

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Puts the tongue between aiohttp and the connection: all that writes asks the handler for its transport."""
        tongue = self._stranger.accepted(transport)
        handler.transport = cast("asyncio.Transport", tongue)
        if tongue.speaker.traits.ending == "idle":
            handler._keepalive_timeout = self._stranger.draw.choice(IDLE_SECONDS)  # noqa: SLF001  # one for all else
        super().connection_made(handler, handler.transport)


class _Caller(ResponseHandler):
    def __init__(self, stranger: Stranger, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._stranger = stranger

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.BaseTransport", self._stranger.opened(transport)))


async def _cut_off(request: web.BaseRequest) -> web.StreamResponse:
    with suppress(Exception):
        await request.read()
    if request.transport is not None:
        request.transport.abort()
    return web.Response()
