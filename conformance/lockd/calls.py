"""Calls to nodes under any identity, with everything noted in the check's transcript."""

import asyncio
import errno
import ssl
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import aiohttp
from cryptography import x509

from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.identities import Authority, Identity, read_identity
from holdfast.conformance.lockd.wire import Answer, Dialect, Request
from holdfast.context import Context
from holdfast.deployment import Deployment
from holdfast.finding import NotObservable, expect
from holdfast.spectime import SpecTime

# What has not come by twice our bound does not come.
NEVER = 2.0
_PATIENCE_EXTRA = 5.0


class Calls:
    """Identities of every kind, and calls under any of them."""

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        self.context = context
        self.T = T
        self.deployment = deployment or context.deployment
        self.nodes: list[str] = list(self.deployment.nodes)
        self.dialect = Dialect.of(context.target.dialect)
        self.listeners: list[Callable[[Request, Answer], None]] = []
        self._sessions: dict[int, tuple[Identity | None, aiohttp.ClientSession]] = {}
        self._authority: Authority | None = None
        self._client: Identity | None = None
        self._own: dict[str, Identity] = {}
        self._folder: Path | None = None

    @classmethod
    async def provide(cls, context: Context) -> Self:
        driver = cls(context, await context.get(SpecTime))
        context.stack.push_async_callback(driver.hang_up)
        # Among themselves the nodes of a cluster have to be on time for anything to stay as it is.
        context.lapses = context.spec.isolation != "shared" and len(context.deployment.nodes) > 1
        return driver

    # ------------------------------------------------------------- who we are

    @property
    def authority(self) -> Authority:
        """The CA that nodes trust."""
        if self._authority is None:
            self._authority = Authority.read(self._file("ca", "a PEM file with the CA certificate and its key"))
        return self._authority

    @property
    def client(self) -> Identity:
        """A coordinator client, which may call everything that is no membership or registry change."""
        if self._client is None:
            given = self.context.target.credentials.get("tc_client_bundle")
            text = self._file("tc_client_bundle", "a coordinator client bundle") if given else ""
            self._client = read_identity("tc-client", text) if text else self.authority.coordinator_client()
        return self._client

    def own(self, node: str) -> Identity:
        """The node's own server certificate; where its bundle is not ours to read, one of the same node-id."""
        if node not in self._own:
            given = self.context.target.credentials.get("server_bundle")
            text = self._file("server_bundle", "the nodes' server bundles", node) if given else ""
            if not text:
                raise NotObservable("[credentials] server_bundle")
            self._own[node] = read_identity(node, text)
        return self._own[node]

    def node_id(self, node: str) -> str:
        return self.own(node).node_id

    def take_identity(self, node: str, identity: Identity) -> None:
        """The node was started with a bundle of ours."""
        self._own[node] = identity

    def _file(self, name: str, what: str, node: str = "") -> str:
        given = self.context.target.credentials.get(name)
        if not given:
            raise NotObservable(f"[credentials] {name}: {what}")
        path = Path(self.deployment.fill(str(given), node))
        try:
            return path.read_text()
        except OSError as error:
            raise NotObservable(f"[credentials] {name}: {what}, readable to us ({error.strerror}: {path})") from error

    def folder(self) -> Path:
        """A place for bundles that nodes are started with; gone when the check ends."""
        if self._folder is None:
            place = tempfile.TemporaryDirectory(prefix="holdfast-lockd-")
            self.context.stack.callback(place.cleanup)
            self._folder = Path(place.name)
        return self._folder

    def url(self, node: str | None = None) -> str:
        urls = self.deployment.nodes[node or self.nodes[0]].urls
        return (urls.get("https") or urls.get("http") or next(iter(urls.values()))).rstrip("/")

    def endpoint(self, node: str) -> str:
        """What the node calls itself: where faults stand between nodes its host is a name that only they know."""
        url = self.url(node)
        if not self.context.target.startable:
            return url
        parts = urlsplit(url)
        return url.replace(str(parts.hostname), self.deployment.fill("{host}", node), 1)

    async def certificate(self, node: str) -> x509.Certificate:
        """What the node itself presents."""
        self.context.transcript.sent(f"TLS handshake with {node}")
        host, _, port = self.url(node).partition("://")[2].partition(":")
        _, writer = await asyncio.open_connection(host, int(port), ssl=self.client.client_context)
        try:
            return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        finally:
            writer.close()

    async def member(self, who: Identity, endpoint: str, node: str | None = None) -> Answer:
        """Make `who` a member at this endpoint; on a target that others use too it leaves again at the end."""
        answer = await self.call(wire.announce(endpoint), who, node=node)
        expect(answer, wire.ok(), why="a server certificate announces itself")
        if not self.context.target.startable:
            self.context.stack.push_async_callback(self.part, who, node)
        return answer

    async def api_leave(self, node: str) -> Answer:
        """The node's own, unguarded leave; on a target that others use too it comes back at the end."""
        if not self.context.target.startable:
            self.context.stack.push_async_callback(self.come_back, node)
        return await self.call(wire.leave(), self.own(node), node=node)

    async def come_back(self, node: str) -> Answer:
        """The explicit announce that ends the pause after a leave."""
        return await self.call(wire.announce(self.endpoint(node)), self.own(node), node=node)

    async def part(self, who: Identity, node: str | None = None) -> Answer:
        """The identity leaves, here only."""
        return await self.call(wire.leave(self.dialect.guard), who, node=node)

    # ------------------------------------------------------------- calls

    async def call(
        self,
        request: Request,
        who: Identity | None = None,
        *,
        node: str | None = None,
        url: str | None = None,
        anonymous: bool = False,
        unwelcome: bool = False,
        data: bytes | None = None,
    ) -> Answer:
        """A call as `who`, a coordinator client unless somebody is named, or without any certificate.

        Of an unwelcome caller a connection that is cut before any answer counts as a failed handshake.
        """
        caller = None if anonymous else who or self.client
        base = url or self.url(node)
        name = caller.name if caller else "nobody"
        self.context.transcript.sent(lambda: f"{request.describe()}  [{name} to {node or base}]")
        answer = await self._exchange(base, request, caller, data, unwelcome=unwelcome or anonymous)
        self.context.transcript.received(answer.describe)
        for hear in self.listeners:
            hear(request, answer)
        return answer

    async def _exchange(
        self, base: str, request: Request, who: Identity | None, data: bytes | None, *, unwelcome: bool
    ) -> Answer:
        sent = time.monotonic()
        body: dict[str, Any] = {"data": data} if data is not None else {}
        if data is None and request.body is not None:
            body = {"json": request.body}
        try:
            with self.context.call(self._patience(request)) as seconds:
                async with self._session(who).request(
                    request.method,
                    base + request.path,
                    params=request.query or None,
                    headers=request.headers,
                    timeout=aiohttp.ClientTimeout(total=seconds),
                    allow_redirects=False,
                    **body,
                ) as reply:
                    parsed, text = wire.parse_body(await reply.read())
                    return Answer(reply.status, reply.headers, parsed, text, sent, time.monotonic(), time.time())
        except TimeoutError:
            return _no_answer(f"after {time.monotonic() - sent:.1f} s", sent)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return _no_answer(f"{type(error).__name__}: {error}", sent, failed=_tls_failed(error, unwelcome=unwelcome))

    def _patience(self, request: Request) -> float:
        T = self.T
        longest = T.leave_reject_max if request.path == wire.LEAVE else T.rm_call_max
        return longest * NEVER + _PATIENCE_EXTRA

    def _session(self, who: Identity | None) -> aiohttp.ClientSession:
        kept = self._sessions.get(id(who))
        if kept is None:
            context = who.client_context if who else _without_certificate(self.authority.pem)
            connector = aiohttp.TCPConnector(limit=0, ssl=context)
            kept = self._sessions[id(who)] = (who, aiohttp.ClientSession(connector=connector))
        return kept[1]

    async def hang_up(self) -> None:
        """Close every connection: one to a node that has ended would only be found dead by the next call."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.shield(asyncio.gather(*(session.close() for _, session in sessions)))


def _no_answer(text: str, sent: float, *, failed: bool = False) -> Answer:
    return Answer(0, {}, None, text, sent, time.monotonic(), time.time(), handshake_failed=failed)


def _tls_failed(error: BaseException, *, unwelcome: bool) -> bool:
    """With TLS 1.3 a client learns of its refused certificate only after its own handshake: as alert, end or reset."""
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return True
    if "alert" in str(error).lower():
        return True
    cut = isinstance(error, OSError) and error.errno in (errno.ECONNRESET, errno.EPIPE)
    return unwelcome and (cut or isinstance(error, aiohttp.ServerDisconnectedError))


def _without_certificate(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    context.check_hostname = False
    return context
