"""Stubs: peers of the target that a check plays itself, so that it sees what nodes send and decides what they get.

A stub is a record (`received`, in the order of arrival) and a script (`on`: a reply or a function, by call). What no
script answers is recorded too, and refused in the protocol's own way. The transcript shows every call and its answer.

    @verifies("…", isolation="quiet", start="by hand", settings={"gc_url": "{stub.gc}"})
    async def test_…(stubs: Stubs, T: SpecTime) -> None:
        gc = await stubs.http("gc")
        gc.on("POST /register", HttpReply(body={"ok": True}))
        await stubs.deployment.start_nodes()
        await gc.wait_for("a registration", lambda call: call.path == "/register", within=T.register_by)

Who owns what: `Stubs` starts a stub on an address that the target reaches (`[harness]` bind and advertise), makes that
address known to the deployment ({stub.gc}, {stub.gc.address}) and closes the stub with the check. A stub keeps its port
while it is closed: `close` cuts all connections and refuses new ones, as a crash would, and `open` listens again. A
check that needs links (`chaos.partition`, `chaos.latency`) can put faults on the way of one node to it: `a-stub.gc`.

Stubs run on the harness's own loop. Where that loop stalls, a stub answers late through no fault of the target; the
audit knows such stalls, and a finding that is late is excused by them as any other.
"""

import asyncio
import contextlib
import inspect
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Protocol, Self, TypeVar

from aiohttp import web
from multidict import CIMultiDict

from holdfast.check.context import Context
from holdfast.check.finding import Finding
from holdfast.target.deployment import Deployment

if TYPE_CHECKING:
    from holdfast.check.grpc_stubs import GrpcStub

# Instead of zero, which aiohttp takes for "no limit".
_AT_ONCE = 0.001


class Received(Protocol):
    """One call that a stub got."""

    @property
    def at(self) -> float:
        """When it arrived, by the monotonic clock."""

    def describe(self) -> str: ...


R = TypeVar("R", bound=Received)
S = TypeVar("S", bound="Stub[Any]")


class Stub(Generic[R]):
    """What all stubs have in common; subclasses speak a protocol in `open` and `close`, and call `record`."""

    scheme = "http"
    # What is spoken there, as a key of `urls`, where the scheme does not say it.
    kind = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.url = ""
        self.received: list[R] = []
        self._news = asyncio.Event()
        self._note: Callable[[str], None] = lambda _: None
        self._place = ("", 0)

    async def open(self) -> None:
        """Listens at `self.place`."""
        raise NotImplementedError

    async def close(self) -> None:
        """Cuts all connections and refuses new ones."""
        raise NotImplementedError

    @property
    def place(self) -> tuple[str, int]:
        """The address to bind, and the port, which stays the same as long as the check lasts."""
        return self._place

    async def settle(self, bind: str, advertise: str, port: int, note: Callable[[str], None]) -> None:
        """Opens it at this address for the first time; called by `Stubs`."""
        self._place, self._note = (bind, port), note
        self.url = f"{self.scheme}://{advertise}:{port}"
        await self.open()

    def record(self, call: R) -> None:
        self.received.append(call)
        self._note(f"{self.name} got {call.describe()}")
        self._news.set()

    def note_answer(self, call: str, said: str) -> None:
        self._note(f"{self.name} answers {call}: {said}")

    def got(self, fits: Callable[[R], bool] = lambda _: True, since: float = 0.0) -> list[R]:
        """Returns the calls that fit, from this moment on (of the monotonic clock)."""
        return [call for call in self.received if call.at >= since and fits(call)]

    async def wait_for(self, what: str, fits: Callable[[R], bool], within: float, since: float = 0.0) -> R:
        """Returns the first call that fits, which may have come already. Raises Finding after `within` seconds."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                while not (found := self.got(fits, since)):
                    self._news.clear()
                    await self._news.wait()
                return found[0]
        seen = ", ".join(call.describe() for call in self.got(since=since)[-5:]) or "nothing"
        raise Finding([f"{what} at {self.name} within {within:.2f} s"], f"{seen} there", late=True)


@dataclass(frozen=True)
class HttpCall:
    """One call. Names of `headers` compare without case; `telling` names those that the transcript shows."""

    at: float
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    telling: Sequence[str] = ()

    def json(self) -> Any:
        """Returns the body as JSON; None if it is none."""
        with contextlib.suppress(ValueError):
            return json.loads(self.body)
        return None

    def describe(self) -> str:
        marks = [f"[{name}: {self.headers[name]}]" for name in self.telling if name in self.headers]
        words = [self.method, self.path, *marks, self.body.decode(errors="replace")]
        return " ".join(word for word in words if word)


@dataclass(frozen=True)
class HttpReply:
    """What is answered: `body` as JSON unless it is text or bytes, after `hold` seconds; or the line is cut instead."""

    status: int = 200
    body: Any = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hold: float = 0.0
    hangs_up: bool = False

    def encoded(self) -> tuple[bytes, dict[str, str]]:
        if isinstance(self.body, bytes):
            return self.body, dict(self.headers)
        if isinstance(self.body, str):
            return self.body.encode(), dict(self.headers)
        return json.dumps(self.body).encode(), {"Content-Type": "application/json", **self.headers}

    def describe(self) -> str:
        return "hung up" if self.hangs_up else f"{self.status} {self.encoded()[0].decode(errors='replace')}".rstrip()


HttpScript = HttpReply | Callable[[HttpCall], HttpReply | Awaitable[HttpReply]]
_UNKNOWN = HttpReply(404, {"error": "the check has no answer to this"})


class HttpStub(Stub[HttpCall]):
    """Serves HTTP/1.1, with `tls` HTTPS. `on("POST /x", …)` scripts one call, `on("*", …)` all others.

    Headers that a verdict may rest on are named in `telling`, so that the transcript shows them.
    """

    def __init__(self, name: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(name)
        self.scheme = "https" if tls else "http"
        self._tls = tls
        self.telling: Sequence[str] = ()
        self._scripts: dict[str, HttpScript] = {}
        self._server: asyncio.Server | None = None
        self._handler: web.Server | None = None

    def on(self, call: str, script: HttpScript) -> None:
        self._scripts[call] = script

    async def open(self) -> None:
        host, port = self.place
        self._handler = web.Server(self._answer)
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._handler, host, port, ssl=self._tls)

    async def close(self) -> None:
        if self._server is not None and self._handler is not None:
            self._server.close()
            await self._handler.shutdown(_AT_ONCE)
            self._server = self._handler = None

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        at, body = time.monotonic(), await request.read()
        headers = CIMultiDict(request.headers)
        call = HttpCall(at, request.method, request.path, dict(request.query), headers, body, self.telling)
        self.record(call)
        reply = await answered(self._script(call), call)
        self.note_answer(f"{call.method} {call.path}", reply.describe())
        if reply.hold:
            await asyncio.sleep(reply.hold)
        if reply.hangs_up and request.transport is not None:
            request.transport.abort()
        raw, given = reply.encoded()
        return web.Response(status=reply.status, body=raw, headers=given)

    def _script(self, call: HttpCall) -> HttpScript:
        return self._scripts.get(f"{call.method} {call.path}") or self._scripts.get("*", _UNKNOWN)


async def answered(script: Any, call: Any) -> Any:
    """Returns what a script says to a call: itself, or what its function returns, at once or later."""
    reply = script(call) if callable(script) else script
    return await reply if inspect.isawaitable(reply) else reply


@dataclass
class Stubs:
    """Starts stubs for one check; a check gets it by annotation."""

    context: Context

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context)

    @property
    def deployment(self) -> Deployment:
        return self.context.deployment

    async def http(self, name: str, tls: ssl.SSLContext | None = None) -> HttpStub:
        return await self.run(HttpStub(name, tls))

    async def grpc(self, name: str, certificate: tuple[bytes, bytes] | None = None) -> "GrpcStub":
        """`certificate` is a PEM key and a PEM chain, for TLS."""
        from holdfast.check.grpc_stubs import GrpcStub  # heavy, and only specs that speak gRPC need it

        return await self.run(GrpcStub(name, certificate))

    async def run(self, stub: S) -> S:
        """Starts any stub, makes its address known to the deployment as {stub.NAME}, and closes it with the check."""
        harness, deployment = self.context.target.harness, self.deployment
        port = int(harness.get("ports", {}).get(stub.name, 0)) or deployment.take_port()
        await stub.settle(harness["bind"], harness["advertise"], port, self.context.transcript.received)
        self.context.stack.push_async_callback(stub.close)
        await deployment.add_stub(stub.name, stub.url, stub.kind)
        return stub
