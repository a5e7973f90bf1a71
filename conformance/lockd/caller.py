"""Calls nodes under any identity, and notes every call in the check's transcript.

The base of the driver (`client.Lockd`). It owns the identities of a check and one HTTP session per identity, because a
TLS connection shows one certificate for its whole life. Sessions are closed whenever a node is killed or restarted: a
kept connection to the old process would fail the next call, which is not about connections.

A call always returns an `Answer`. Status 0 means that there was none; `handshake_failed` is set only where TLS itself
was refused. That is hard to see: with TLS 1.3 a client learns of its refused certificate after its own handshake is
complete, as an alert, an end or a reset, at any moment, also while it still writes its request. A cut connection
therefore counts as a refused handshake only for callers that the check expects to be refused (`unwelcome`).

A call that only prepares a check goes through `arrange`, which names the row that judges such a call.
"""

import asyncio
import errno
import ssl
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

import aiohttp
from cryptography import x509

from holdfast.check.context import Context
from holdfast.check.finding import NotObservable, expect
from holdfast.check.spectime import SpecTime
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.identities import Authority, Identity, read_identity
from holdfast.conformance.lockd.wire import Answer, Dialect
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.http import IDLE_AT_MOST, HttpDriver
from holdfast.conformance.shared.wire import Request
from holdfast.target.deployment import Deployment

_TIMEOUT_EXTRA = 5.0
_HTTPS_PORT = 443
# Calls for which a descriptor may state how long they are silent.
_WINDOWS = {wire.LEAVE: "leave", wire.REGISTER: "registry", wire.UNREGISTER: "registry"}
# There was no connection that could have been cut.
_NOT_REACHED = (errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ETIMEDOUT)


class Caller(HttpDriver[Answer]):
    """The identities of a check, and calls under any of them."""

    answer: ClassVar[type[shared.Answer]] = Answer

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.dialect = Dialect.of(context.target.dialect)
        self._sessions: dict[int, tuple[Identity | None, aiohttp.ClientSession]] = {}
        self._authority: Authority | None = None
        self._client: Identity | None = None
        self._own: dict[str, Identity] = {}
        self._folder: Path | None = None

    @classmethod
    async def provide(cls, context: Context) -> Self:
        driver = cls(context, await context.get(SpecTime))
        context.stack.push_async_callback(driver.hang_up)
        # The nodes of a cluster hold leases from each other, which lapse when the machine is too slow for them.
        context.lapses = context.spec.isolation != "shared" and len(context.deployment.nodes) > 1
        return driver

    @property
    def authority(self) -> Authority:
        """The CA that nodes trust."""
        if self._authority is None:
            self._authority = Authority.read(self._file("ca", "a PEM file with the CA certificate and its key"))
        return self._authority

    @property
    def client(self) -> Identity:
        """A coordinator client, which may call everything except membership and registry changes."""
        if self._client is None:
            given = self.context.target.credentials.get("tc_client_bundle")
            text = self._file("tc_client_bundle", "a coordinator client bundle") if given else ""
            self._client = read_identity("tc-client", text) if text else self.authority.coordinator_client()
        return self._client

    def own(self, node: str) -> Identity:
        """Returns the node's own server certificate. Raises NotObservable if its bundle is missing or not readable."""
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
        """Notes that the node was started with a bundle made by the check."""
        self._own[node] = identity

    def _file(self, name: str, what: str, node: str = "") -> str:
        given = self.context.target.credentials.get(name)
        if not given:
            raise NotObservable(f"[credentials] {name}: {what}")
        path = Path(self.deployment.fill(str(given), node))
        try:
            return path.read_text()
        except OSError as error:
            raise NotObservable(
                f"[credentials] {name}: {what}, which Holdfast can read ({error.strerror}: {path})"
            ) from error

    def folder(self) -> Path:
        """Returns a folder for bundles that nodes are started with; it is removed when the check ends."""
        if self._folder is None:
            place = tempfile.TemporaryDirectory(prefix="holdfast-lockd-")
            self.context.stack.callback(place.cleanup)
            self._folder = Path(place.name)
        return self._folder

    def url(self, node: str | None = None) -> str:
        return self.url_of(node, "https", "http", *self.deployment.nodes[node or self.nodes[0]].urls)

    def endpoint(self, node: str) -> str:
        """Returns what the node calls itself, in the spelling that answers are read in (`endpoints.canonical`).

        With links between nodes, its host is a name that only the links know.
        """
        url = self.url(node)
        if self.context.target.startable:
            url = url.replace(str(urlsplit(url).hostname), self.deployment.fill("{host}", node), 1)
        return canonical(url)

    async def certificate(self, node: str) -> x509.Certificate:
        """Returns the certificate that the node itself presents."""
        self.context.transcript.sent(f"TLS handshake with {node}")
        place = urlsplit(self.url(node))
        _, writer = await asyncio.open_connection(
            place.hostname, place.port or _HTTPS_PORT, ssl=self.client.client_context
        )
        try:
            return x509.load_der_x509_certificate(writer.get_extra_info("ssl_object").getpeercert(binary_form=True))
        finally:
            writer.close()

    async def member(self, who: Identity, endpoint: str, node: str | None = None) -> Answer:
        """Makes `who` a member at this endpoint; on a target that later checks use too, it leaves at the end."""
        answer = await self.arrange("TC-MEMBER-01", wire.announce(endpoint), who, node=node)
        if not self.context.target.startable:
            self.context.stack.push_async_callback(self.leave_as, who, node)
        return answer

    async def api_leave(self, node: str) -> Answer:
        """Lets the node leave everywhere; on a target that later checks use too, it returns at the end."""
        if not self.context.target.startable:
            self.context.stack.push_async_callback(self.come_back, node)
        return await self.call(wire.leave(), self.own(node), node=node)

    async def goes(self, node: str, owner: str = "TC-LEAVE-05") -> Answer:
        """Lets the node leave everywhere and insists that it is accepted."""
        answer = await self.api_leave(node)
        with self.context.arranging(owner):
            expect(answer, wire.ok(), why=f"the leave of {node}")
        return answer

    async def returns(self, node: str, owner: str = "TC-LEAVE-04") -> Answer:
        """Announces the node explicitly and insists that it is accepted."""
        answer = await self.come_back(node)
        with self.context.arranging(owner):
            expect(answer, wire.ok(), why=f"the explicit announce of {node}")
        return answer

    async def come_back(self, node: str) -> Answer:
        """Announces the node explicitly, which ends its pause after a leave."""
        return await self.call(wire.announce(self.endpoint(node)), self.own(node), node=node)

    async def leave_as(self, who: Identity, node: str | None = None) -> Answer:
        """Lets the identity leave at this node only; the guard header keeps the node from passing it on."""
        return await self.call(wire.leave(self.dialect.guard), who, node=node)

    async def arrange(
        self, owner: str, request: Request, who: Identity | None = None, *, node: str | None = None
    ) -> Answer:
        """Makes a call that only prepares the check, and insists on 200; `owner` is the row that judges it.

        A node that has just started may say "503, come back": then it is asked again.
        """
        end = time.monotonic() + self.T.never("self_listed_max")
        answer = await self.call(request, who, node=node)
        while _asks_for_patience(answer) and time.monotonic() < end:
            await self.T.sleep(self.T.clock_slack, f"{request.path}, which is not served yet")
            answer = await self.call(request, who, node=node)
        with self.context.arranging(owner):
            expect(answer, wire.ok(), why=f"{request.path}, to prepare the check")
        return answer

    async def warm(self, count: int, node: str, who: Identity | None = None) -> None:
        """Opens `count` connections as `who`, so that a burst of that many calls arrives together."""
        await self.parallel([partial(self.call, wire.members(), who, node=node)] * count)

    def judges(self, owner: str) -> bool:
        """Whether this check verifies that row."""
        return any(claim.id == owner for claim in self.context.spec.claims)

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
        """Sends a request as `who`, by default a coordinator client, or without any certificate; returns the answer.

        For an `unwelcome` caller, a connection that is cut before any answer counts as a failed handshake.
        """
        caller = None if anonymous else who or self.client
        base = url or self.url(node)
        name = caller.name if caller else "nobody"

        def failure(error: Exception) -> Mapping[str, Any]:
            return {"handshake_failed": _tls_failed(error, unwelcome=unwelcome or anonymous)}

        answer = await self.converse(
            lambda: f"{request.describe()}  [{name} to {node or base}]",
            request,
            self.exchange(
                lambda: self._session(caller),
                base,
                request,
                within=self._answer_timeout(request),
                data=data,
                failure=failure,
            ),
        )
        if url is None:
            self.noticed(node or self.nodes[0], request, answer)
        return answer

    def noticed(self, node: str, request: Request, answer: Answer) -> None:
        """Called with every answer of a node; here it is not kept."""

    def _answer_timeout(self, request: Request) -> float:
        """Returns the seconds to wait for an answer: until the slowest such call never comes, and a margin.

        A target may state that it takes longer, because it tries again itself before it gives up (`[windows]`).
        """
        slowest = "leave_reject_max" if request.path == wire.LEAVE else "rm_call_max"
        stated = self.context.target.windows.get(_WINDOWS.get(request.path, ""), 0.0)
        return max(self.T.never(slowest), stated) + _TIMEOUT_EXTRA

    def longest_answer(self) -> float:
        """Returns the seconds after which no answer to any call comes any more."""
        return max(self._answer_timeout(request) for request in (wire.leave(), wire.register("", "")))

    def unanswered(self, how: str, sent: float, **more: Any) -> Answer:
        return super().unanswered(how.replace("[Errno None] ", ""), sent, **more)

    def _session(self, who: Identity | None) -> aiohttp.ClientSession:
        kept = self._sessions.get(id(who))
        if kept is None:
            context = who.client_context if who else _without_certificate(self.authority.pem)
            connector = aiohttp.TCPConnector(limit=0, ssl=context, keepalive_timeout=IDLE_AT_MOST)
            kept = self._sessions[id(who)] = (who, aiohttp.ClientSession(connector=connector))
        return kept[1]

    async def hang_up(self) -> None:
        """Closes every connection; one to a node that has ended would make the next call fail."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.shield(asyncio.gather(*(session.close() for _, session in sessions)))


def _tls_failed(error: BaseException, *, unwelcome: bool) -> bool:
    """Whether the target refused the TLS handshake: by an alert, or by cutting off a caller that is unwelcome."""
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return True
    if "alert" in str(error).lower():
        return True
    cut = isinstance(error, aiohttp.ClientConnectionError | OSError)
    return unwelcome and cut and getattr(error, "errno", None) not in _NOT_REACHED


def _asks_for_patience(answer: Answer) -> bool:
    return answer.status == HTTPStatus.SERVICE_UNAVAILABLE and (
        "Retry-After" in answer.headers or bool(answer.fields.get("retry_after_seconds"))
    )


def _without_certificate(ca: str) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=ca)
    context.check_hostname = False
    return context
