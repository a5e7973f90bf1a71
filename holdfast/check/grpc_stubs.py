"""A stub that speaks gRPC without generated code: methods by name, messages as bytes.

On the wire all four kinds of calls look alike: any number of messages each way, then a status. So one handler serves
them all. `on` scripts a call with one request and one reply; `on_stream` a call whose messages the script reads and
writes as it likes. A method without a script gets UNIMPLEMENTED, as from any server that does not have it.

A server of grpc.aio can't be opened twice, so each `open` makes a new one on the same port. `close` gives calls under
way no grace: they end with UNAVAILABLE at the caller, as if the process had died.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import grpc
import grpc.aio

from holdfast.check.stubs import Stub, answered

_OPTIONS = [("grpc.so_reuseport", 0)]


@dataclass(frozen=True)
class GrpcRefusal:
    """Ends a call with another status than OK."""

    code: grpc.StatusCode
    details: str = ""

    def describe(self) -> str:
        return f"{self.code.name} {self.details}".rstrip()


@dataclass
class GrpcCall:
    """One call; `messages` are the requests that have arrived so far, `left` the seconds that its deadline leaves."""

    at: float
    method: str
    metadata: Mapping[str, str | bytes]
    left: float | None = None
    messages: list[bytes] = field(default_factory=list)

    @property
    def request(self) -> bytes:
        return self.messages[0] if self.messages else b""

    def describe(self) -> str:
        return f"{self.method} ({', '.join(f'{len(message)} bytes' for message in self.messages) or 'no message yet'})"


GrpcReply = bytes | GrpcRefusal
GrpcScript = GrpcReply | Callable[[GrpcCall], GrpcReply | Awaitable[GrpcReply]]
# Gets the call and its requests one by one; yields replies.
StreamScript = Callable[[GrpcCall, AsyncIterator[bytes]], AsyncIterator[GrpcReply]]


class GrpcStub(Stub[GrpcCall]):
    """`certificate` is a PEM key and a PEM chain; without it the stub serves clear text."""

    kind = "grpc"

    def __init__(self, name: str, certificate: tuple[bytes, bytes] | None = None) -> None:
        super().__init__(name)
        self.scheme = "https" if certificate else "http"
        self._certificate = certificate
        self._scripts: dict[str, StreamScript] = {}
        self._server: grpc.aio.Server | None = None

    def on(self, method: str, script: GrpcScript) -> None:
        """Answers `/package.Service/Method` with these bytes, or with what the function returns."""

        async def one(call: GrpcCall, requests: AsyncIterator[bytes]) -> AsyncIterator[GrpcReply]:
            async for _ in requests:
                yield await answered(script, call)
                return

        self._scripts[method] = one

    def on_stream(self, method: str, script: StreamScript) -> None:
        self._scripts[method] = script

    async def open(self) -> None:
        host, port = self.place
        self._server = grpc.aio.server(options=_OPTIONS)
        self._server.add_generic_rpc_handlers((_AnyMethod(self),))
        address = f"{host}:{port}"
        if self._certificate:
            self._server.add_secure_port(address, grpc.ssl_server_credentials([self._certificate]))
        else:
            self._server.add_insecure_port(address)
        await self._server.start()

    async def close(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop(None)

    async def serve(self, method: str, requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
        call = GrpcCall(time.monotonic(), method, dict(context.invocation_metadata()), context.time_remaining())
        script = self._scripts.get(method)
        noted = self._noted(call, requests)
        if script is None:
            async for _ in noted:  # a client that still sends would see a cut stream instead of the status
                break
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, f"the check has no answer to {method}")
            return
        async for reply in script(call, noted):
            said = reply.describe() if isinstance(reply, GrpcRefusal) else f"{len(reply)} bytes"
            self.note_answer(method, said)
            if isinstance(reply, GrpcRefusal):
                await context.abort(reply.code, reply.details)
            else:
                yield reply

    async def _noted(self, call: GrpcCall, requests: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Passes the requests on; the call is recorded with its first one, before the script sees it."""
        async for message in requests:
            call.messages.append(message)
            if len(call.messages) == 1:
                self.record(call)
            yield message


class _AnyMethod(grpc.GenericRpcHandler):
    """Leads every method to the stub."""

    def __init__(self, stub: GrpcStub) -> None:
        self._stub = stub

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Any:
        method = str(handler_call_details.method)

        async def behave(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            async for reply in self._stub.serve(method, requests, context):
                yield reply

        return grpc.stream_stream_rpc_method_handler(behave)
