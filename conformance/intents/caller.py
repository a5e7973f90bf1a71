"""Calls the nodes of a target that takes intents, under any credentials, and notes every call in the transcript.

The base of the driver (`client.Intents`). `authorization` of a call is the whole header: nothing given is the write
token, `NOBODY` is none at all, and anything else is sent as it is. Sessions that the target gave to a check are noted:
on a deployment that other checks use too they are ended with the check, and the tuner slots that they may have held
are given back (`places`).

Times follow the catalogue: what a latency promises is waited for until give_up, or until twice the latency where that
is later (`never`).
"""

import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, TypeVar

import aiohttp
from multidict import CIMultiDict

from holdfast.check.context import Context
from holdfast.check.finding import Finding, NotApplicable, NotObservable
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.dialects import ADAPTERS, Adapter
from holdfast.conformance.intents.keys import IntentKeys
from holdfast.conformance.intents.places import FEWEST, USUAL, Places
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.bursts import BurstDriver
from holdfast.conformance.shared.http import IDLE_AT_MOST, any_certificate
from holdfast.conformance.shared.wire import Request
from holdfast.spec.catalogue import TimingKind
from holdfast.target.deployment import Deployment

R = TypeVar("R")
# The authorization of a caller who shows none.
NOBODY = ""
WRITERS = ("write", "write2", "write3", "write4", "write5")
# Requests in flight; a herd of the catalogue goes out at once.
PARALLEL = 128
# Rounds of one observation that run beside each other.
ROUNDS = 5
# Seconds for an answer beyond the longest that a row waits for one.
_TIMEOUT_EXTRA = 5.0


class Caller(BurstDriver[Answer]):
    """The credentials of a check, and calls under any of them."""

    answer: ClassVar[type[shared.Answer]] = Answer
    at_once: ClassVar[int | None] = PARALLEL
    settled: ClassVar[str] = "accept_fast"

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.http = self._new_connections()
        target = context.target
        self.adapter: Adapter = ADAPTERS[str(target.dialect.get("intent_adapter", "default"))](
            target.dialect, context.deployment.fill
        )
        self.apis = [name for name, node in self.deployment.nodes.items() if {"http", "https"} & {*node.urls}]
        workers = [node.name for node in self.deployment.nodes_of("worker")]
        self.workers = workers or self.apis  # one process may be both
        self.answer_timeout = 2 * T.admission_max + _TIMEOUT_EXTRA
        self._given: dict[str, str] = {}
        self._taken = 0
        self._keys: IntentKeys | None = None
        for name, value in target.credentials.items():
            context.transcript.secrets.register(str(value), name)

    # --- who and where

    def has_credential(self, name: str) -> bool:
        return bool(self.context.target.credentials.get(name))

    def credential(self, name: str) -> str:
        """Returns a credential of the descriptor. Raises NotObservable if there is none."""
        if not self.has_credential(name):
            raise NotObservable(f"[credentials] {name}")
        return self.deployment.fill(str(self.context.target.credentials[name]))

    def bearer(self, name: str = "write") -> str:
        """Returns the header with which the holder of this token is authorized."""
        return f"Bearer {self.credential(name)}"

    @property
    def reader(self) -> str:
        return self.bearer("read")

    @property
    def writers(self) -> list[str]:
        """The headers of all users that may post intents."""
        return [self.bearer(name) for name in WRITERS if self.has_credential(name)]

    @property
    def worker(self) -> str:
        """The first worker."""
        return self.workers[0]

    def url(self, node: str | None = None) -> str:
        return self.url_of(node or self.apis[0], "http", "https")

    @property
    def fronts(self) -> list[str]:
        return self.apis[:1]

    @property
    def store(self) -> IntentKeys:
        """The target's Redis, to look into."""
        if self._keys is None:
            if not self.deployment.store_url:
                raise NotObservable("[observe] redis")
            self._keys = IntentKeys.of(self.context, self.deployment)
        return self._keys

    # --- calls

    def _new_connections(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(limit=0, ssl=False, keepalive_timeout=IDLE_AT_MOST)
        http = aiohttp.ClientSession(connector=connector)
        self.context.stack.push_async_callback(http.close)
        return http

    async def hang_up(self) -> None:
        """Lets all further calls open connections of their own; calls that are on their way keep theirs."""
        self.http = self._new_connections()

    async def call(
        self,
        request: Request,
        authorization: str | None = None,
        *,
        node: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request and returns the answer; `url` is for a link in front of a node."""
        return await self._send(request, authorization, url or self.url(node), headers, None)

    async def post(
        self,
        body: Any,
        authorization: str | None = None,
        *,
        node: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Posts an intent with this body, which need not be one."""
        return await self.call(wire.intent(body), authorization, node=node, url=url, headers=headers)

    async def post_text(self, text: str, authorization: str | None = None, *, node: str | None = None) -> Answer:
        """Posts an intent whose body is this text, as JSON or not."""
        request = Request("POST", wire.INTENTS, text)
        return await self._send(
            request, authorization, self.url(node), {"Content-Type": "application/json"}, text.encode()
        )

    async def send_raw(
        self, pieces: Sequence[bytes], *, pause: float = 0.0, last: bool = False, break_off: bool = False
    ) -> Answer:
        """Sends bytes that no client library would send to the first API; returns the answer, status 0 if none came."""
        url = self.url()
        tls = any_certificate() if url.startswith("https") else None
        answer = await self.raw_exchange(
            url, pieces, within=self.answer_timeout, tls=tls, pause=pause, last=last, break_off=break_off
        )
        self._keep(answer, url)
        return answer

    async def poll(
        self, session: "str | HasId", authorization: str | None = None, *, node: str | None = None
    ) -> Answer:
        """Asks for a session, with the read token unless another is given."""
        return await self.call(
            wire.poll(id_of(session)), self.reader if authorization is None else authorization, node=node
        )

    async def _send(
        self,
        request: Request,
        authorization: str | None,
        base: str,
        headers: Mapping[str, str] | None,
        data: bytes | None,
    ) -> Answer:
        sent = with_authorization(headers, self.bearer() if authorization is None else authorization)

        async def exchange() -> Answer:
            answer = await self.exchange(
                lambda: self.http, base, request, within=self.answer_timeout, headers=sent, data=data
            )
            self._keep(answer, base)
            return answer

        said = f"as {authorization or 'nobody'}  " if authorization is not None else ""
        return await self.converse(lambda: f"{said}{request.describe()}", request, exchange())

    def _keep(self, answer: Answer, base: str) -> None:
        if answer.status == 202:
            self.note_session(answer.session_id, base)

    def note_session(self, session_id: str, base: str = "") -> None:
        """Notes a session that an API gave to the check, to end it with the check; "" is none."""
        if not session_id:
            return
        if not self._given and not self.owns_deployment:  # recordings take no places
            self.context.stack.push_async_callback(self.tidy_up)
        self._given[session_id] = base or self.url()

    def never(self, bound: str) -> float:
        """Returns the seconds after which what this name promises does not happen any more, as the catalogue says."""
        latency = self.T.timings.of(bound).kind is TimingKind.LATENCY
        return max(self.T.never(bound), self.T.give_up if latency else 0.0)

    async def warm(self, nodes: Sequence[str], count: int) -> None:
        """Opens this many connections to each API: each carries one poll of nobody's session, all at the same time."""
        calls = [partial(self.poll, str(uuid.uuid4()), node=node) for node in nodes for _ in range(count)]
        await self.parallel(calls, at_once=len(calls))

    async def restart(self, node: str, *, unset: Iterable[str] = (), **settings: str) -> Moment:
        """Starts the node again with these settings and without those of `unset`; returns when it was started."""
        without = [unset] if isinstance(unset, str) else list(unset)
        if without:
            self._require_settings(dict.fromkeys(without, ""))
            self.context.transcript.note(f"{node} without {', '.join(without)}")
            self.deployment.nodes[node].configure(unset=without)
        return await super().restart(node, **settings)

    @property
    def lone_workers(self) -> list[str]:
        """The workers. Raises NotApplicable where they are the API too, which would be gone with them."""
        if both := {*self.workers} & {*self.apis}:
            raise NotApplicable(f"{', '.join(sorted(both))} is API and worker in one process")
        return self.workers

    async def pause_workers(self) -> None:
        """Suspends all workers, until the check ends."""
        await self.places()  # its sessions are given back after the workers went on
        for name in self.lone_workers:
            self.context.stack.push_async_callback(self.resume, name)
            await self.pause(name)

    async def resume_workers(self) -> Moment:
        """Lets all workers go on; returns when."""
        asked = self.T.now()
        for name in self.lone_workers:
            await self.resume(name)
        return Moment(asked.lo, self.T.now().hi)

    async def metrics_text(self, node: str) -> str:
        """Returns the metrics page of a node. Raises NotObservable if it has none, Finding if it can't be read."""
        spec = self.deployment.nodes[node].spec
        listener = self.context.target.metrics_of(spec)
        url = listener.at(self.deployment.nodes[node].urls) if listener else ""
        if not url:
            raise NotObservable("[observe] metrics")
        answer = await self.call(Request("GET", ""), NOBODY, url=url)
        if answer.status != 200:
            raise Finding(["200 with metrics"], answer.describe(), url, late=answer.late)
        return answer.text

    # --- what a check takes, and gives back

    async def places(self, count: int = USUAL) -> None:
        """Takes tuner slots for this many sessions at a time, on a deployment that other checks use too.

        Called before the first session; without it a check has the usual number of them.
        """
        if self._taken:
            return
        self._taken = count
        if self.owns_deployment:
            return
        total = int(self.context.target.dialect.get("tuner_slots", FEWEST))
        places = Places.at(self.url(), total)
        taken = await places.take(count)
        self.context.stack.push_async_callback(places.give_back, taken)
        self.context.stack.push_async_callback(self.tidy_up)

    async def rounds(self, work: Sequence[Callable[[], Awaitable[R]]], *, sessions: int = 1) -> list[R]:
        """Does all of it, as much at a time as there are tuner slots for, and returns the results in order.

        Each piece has so many sessions at a time, and ends them. Called before the first session. A slot may be held
        for a moment after its session has ended, so half of them stay free for the next piece.
        """
        total = int(self.context.target.dialect.get("tuner_slots", FEWEST))
        at_once = max(1, min(ROUNDS, total // (2 * sessions)))
        await self.places(2 * at_once * sessions)
        return await self.parallel(work, at_once)

    @property
    def owns_deployment(self) -> bool:
        """Whether the deployment is this check's alone and ends with it."""
        return self.context.target.startable and self.context.spec.isolation != "shared"

    async def tidy_up(self) -> None:
        """Ends all sessions of this check and waits until they hold nothing any more."""

        async def end(session_id: str, base: str) -> None:
            if (await self.call(wire.poll(session_id), self.reader, url=base)).state in (*wire.TERMINAL, ""):
                return
            await self.call(wire.intent(self.adapter.stop(session_id)), url=base)

            async def over() -> bool:
                return (await self.call(wire.poll(session_id), self.reader, url=base)).terminal

            await self.T.until(over, give_up=self.never("stop_release"), what="a session of the check to end")

        # They stay noted: the answer to a stop notes its session, and the first one noted asks for another tidying up.
        await self.parallel([partial(end, *each) for each in self._given.items()], at_once=8)


class HasId(Protocol):
    """Something that has the id of a session."""

    @property
    def id(self) -> str: ...


def id_of(session: str | HasId) -> str:
    return session if isinstance(session, str) else session.id


def with_authorization(headers: Mapping[str, str] | None, authorization: str) -> Mapping[str, str]:
    """Returns the headers with the authorization in them, where there is one; repeated ones stay repeated."""
    sent = CIMultiDict(headers or {})
    if authorization:
        sent["Authorization"] = authorization
    return sent
