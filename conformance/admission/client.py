"""The driver: the client side of the admission protocol. Checks talk to the target only through it.

It keeps checks apart on a deployment that they share: each asks for fresh users, characters and instances, so no check
can see another's locks, sessions or places. What can't be kept apart (gauges over all sessions, whole logs) is for
checks with a deployment of their own. On a target that Holdfast did not start, the driver also notes every session and
place that it was given and ends them all when the check ends (`footprint`).

A call always returns an `Answer`, in the words of the contract whatever dialect the target speaks; status 0 means that
there was none. Secrets of an answer are registered before it is written into the transcript. A call that only arranges
something waits out a target that asks to come back later (503 with Retry-After), and raises if it fails all the same:
in the name of the row that owns it (`Context.arranging`), so that no other row is charged with it.
"""

import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar, Self, TypeVar

import aiohttp

from holdfast.check.context import Context
from holdfast.check.finding import Finding, NotObservable
from holdfast.check.observe import Metrics
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.dialects import dialect
from holdfast.conformance.admission.features import Features, blocked
from holdfast.conformance.admission.footprint import Footprint
from holdfast.conformance.admission.identities import Character, Identities, User
from holdfast.conformance.admission.instance import Held, Instance, outcomes, tally
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.bursts import BurstDriver
from holdfast.conformance.shared.http import IDLE_AT_MOST
from holdfast.conformance.shared.wire import Request
from holdfast.target.deployment import Deployment

__all__ = ["ADMIN_HEADER", "PARALLEL", "Admission", "Held", "Instance", "outcomes", "tally"]

ADMIN_HEADER = "X-Admin-Token"
# Requests in flight that keep a node busy; more would only pile up in its accept queue.
PARALLEL = 64
# Requests in flight while arranging; more would slow down the other checks.
ARRANGING = 8
# How many fit into an instance unless a check says otherwise: enough for every check that is not about capacity.
ROOM = 10
# A call without an answer after this many attempt deadlines and seconds has none.
_TIMEOUT_FACTOR, _TIMEOUT_EXTRA = 1.5, 3.0
# What a target without a waiting line says of an instance that is full.
_FULL = ("CAPACITY_FULL", "QUEUE_FULL")

R = TypeVar("R")


class Admission(BurstDriver[Answer]):
    """One target as a check sees it. Fresh users, characters and instances keep checks apart in a shared deployment."""

    answer: ClassVar[type[shared.Answer]] = Answer
    at_once: ClassVar[int | None] = PARALLEL
    settled: ClassVar[str] = "prompt_never"

    def __init__(
        self, context: Context, T: SpecTime, http: aiohttp.ClientSession, deployment: Deployment | None = None
    ) -> None:
        super().__init__(context, T, deployment)
        self.build = str(context.target.dialect.get("current_build", "dev-build"))
        self.features = Features(context.target.dialect)
        self.http = http
        self._footprint = Footprint()
        self._given = 0
        self.identities = Identities(context.target.credentials)
        self._latest_user: User | None = None
        self.codec = dialect(str(context.target.dialect.get("name", "contract")))
        self.admin_headers = {ADMIN_HEADER: str(context.target.credentials.get("admin_token", ""))}
        self.answer_timeout = T.attempt_deadline * _TIMEOUT_FACTOR + _TIMEOUT_EXTRA
        context.transcript.secrets.register(self.admin_headers[ADMIN_HEADER], "admin-token")

    @classmethod
    async def provide(cls, context: Context) -> Self:
        # Certificates are not verified: checks judge whether a connection is encrypted, not who signed for it.
        connector = aiohttp.TCPConnector(limit=0, ssl=False, keepalive_timeout=IDLE_AT_MOST)
        http = aiohttp.ClientSession(connector=connector)
        context.stack.push_async_callback(http.close)
        T = await context.get(SpecTime)
        driver = cls(context, T, http)
        context.stack.callback(driver.identities.give_back, T.rate_window + T.rate_lock)
        if not context.target.startable:
            context.stack.push_async_callback(driver.tidy_up)
        if not context.answer_timeout.silent:  # else it would only wait for one more answer that does not come
            await driver.warm(driver.nodes, 1)
        return driver

    async def another(self) -> "Admission":
        """Returns a driver for one more deployment."""
        twin = type(self)(self.context, self.T, self.http, await self.context.another())
        await twin.warm(twin.nodes, 1)
        return twin

    async def tidy_up(self) -> None:
        """Ends all sessions and places of this check, on a target that later checks use too."""
        for calls in self._footprint.endings():
            await self.parallel([partial(self._send, self.url(), call, _bearer(user)) for call, user in calls])

    async def instance(
        self, capacity: int | None = None, *, room: int = ROOM, node: str | None = None, name: str | None = None
    ) -> Instance:
        """Registers a fresh instance: of exactly this capacity, or with at least this room.

        On a target whose capacity is fixed it is one of those that the descriptor names.
        """
        if self.features.fixed_capacity is not None:
            return self._ready_instance(capacity, room)
        instance = Instance(self, name or f"i-{uuid.uuid4().hex[:12]}")
        await instance.put(capacity=room if capacity is None else capacity, node=node)
        return instance

    def _ready_instance(self, capacity: int | None, room: int) -> Instance:
        self.features.fits(capacity, room)
        ready = self.features.instances
        if self._given == len(ready):
            raise NotObservable("more names in [dialect] instances", f"it has {len(ready)}")
        self._given += 1
        return Instance(self, ready[self._given - 1])

    async def character(self, user: User | None = None, *, node: str | None = None) -> Character:
        """Registers a fresh character, of a fresh user unless one is given; or takes one that the target knows."""
        owner = user or self.user()
        if known := self.identities.known_character(owner):
            return Character(known, owner)
        character = Character(str(uuid.uuid4()), owner)
        if self.features.has("accounts"):
            await self.register(character, node=node)
        return character

    async def characters(self, count: int, user: User | None = None) -> list[Character]:
        return await self.parallel([lambda: self.character(user)] * count, ARRANGING)

    def stranger(self) -> User:
        """Returns a user to whom none of the check's characters belongs."""
        self.features.require("accounts")
        return self.user()

    async def register(self, character: Character, *, node: str | None = None, **fields: Any) -> Answer:
        known = {"userId": character.user.id, "suspended": False, **fields}
        return await self.administer(wire.put_character(character.id, **known), "AD-ADMIT-07", node=node)

    async def suspend(self, character: Character, *, on: bool = True, node: str | None = None, **fields: Any) -> Answer:
        self.features.require("accounts")
        return await self.register(character, node=node, suspended=on, **fields)

    def user(self) -> User:
        user = self._latest_user = self.identities.user()
        self.context.transcript.secrets.register(user.bearer, "bearer")
        return user

    async def lose(self, socket: Socket) -> Moment:
        """Drops a socket and waits until the target can have noticed; returns when it was dropped."""
        dropped = await socket.drop()
        await self.T.sleep(self.T.wait_tolerance, "the target to notice the drop")
        return dropped

    def arranging(self, owner: str) -> AbstractContextManager[None]:
        """Put around steps that only prepare the check; `owner` is the row that judges them (`Context.arranging`)."""
        return self.context.arranging(owner)

    def stale_bound(self) -> float:
        """Returns the seconds by which a session is gone after its last sign of life; some targets add a grace."""
        T, via_grace = self.T, self.features.get("stale_via_grace")
        return (T.stale_reclaim_grace if via_grace else T.stale_reclaim) + T.slack

    async def administer(self, request: Request, owner: str, *, node: str | None = None) -> Answer:
        """Makes an administration call, which `owner` judges. Raises NotObservable if the target has no such call."""
        answer = await self.patiently(lambda: self.ask_admin(request, node=node))
        if answer.status in (404, 405, 501):
            raise blocked(request)
        if answer.status in (401, 403):
            raise NotObservable("[credentials] admin_token, as the target knows it")
        with self.context.arranging(owner):
            if not 200 <= answer.status < 300:
                raise Finding(["2xx"], answer.describe(), f"{request.method} {request.path}", late=answer.late)
        return answer

    async def ask_admin(self, request: Request, *, node: str | None = None) -> Answer:
        """Makes an administration call once and returns the answer, whatever it is."""
        return await self.call(request, None, node=node, headers=self.admin_headers)

    async def patiently(self, call: Callable[[], Awaitable[Answer]]) -> Answer:
        """Makes a call that only arranges something. Waits out, within `recovery`, a 503 that says when to come back.

        A target may say so in its first seconds, or amid the work of other checks; no check is about that.
        """
        end = time.monotonic() + self.T.recovery
        while True:
            answer = await call()
            hint = answer.retry_header or answer.retry_after
            left = end - time.monotonic()
            if answer.status != 503 or not isinstance(hint, int | float) or left <= 0:
                return answer
            await self.T.sleep(min(hint, left), "the target, which asks to come back later")

    async def warm(self, nodes: Sequence[str], count: int) -> None:
        """Opens this many connections to each node: each carries one harmless call, all of them at the same time.

        A node that has just started may ask to come back later; afterwards it serves, and what it says is judged. The
        call has a user's bearer, if we were given one, because without it a node may refuse it before it knows whether
        it can serve.
        """
        call = wire.queue_status("i-nobody-registered", str(uuid.uuid4()))
        user = self._latest_user or self.identities.anybody()
        headers = _bearer(user) if user else {}
        urls = [self.url(node) for node in nodes for _ in range(count)]
        calls = [partial(self.patiently, partial(self._send, url, call, headers)) for url in urls]
        await self.parallel(calls, at_once=len(urls))

    async def restart(self, node: str, **settings: str) -> Moment:
        """Starts the node again with these settings and waits until it serves; returns when it was started."""
        started = await super().restart(node, **settings)
        await self.warm([node], 1)
        return started

    async def call(
        self,
        request: Request,
        user: User | None,
        *,
        node: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Sends a request as this user (None: without a bearer) and returns the answer."""
        base = url or self.url(node)
        sent = {**(headers or {}), **request.headers, **(_bearer(user) if user else {})}

        async def exchange() -> Answer:
            answer = await self._send(base, request, sent)
            self._footprint.note(request, user, answer)
            return answer

        answer = await self.converse(lambda: _said(request, user, headers, node), request, exchange())
        if answer.reason in _FULL:
            self.features.require("queue")
        return answer

    def answered(self, status: int, headers: Mapping[str, str], raw: bytes, sent: float) -> Answer:
        """Returns the answer in the words of the contract, however the request was made."""
        return self.codec.read(super().answered(status, headers, raw, sent))

    async def raw(
        self, method: str, path: str, *, node: str | None = None, data: bytes | None = None, headers: Mapping[str, str]
    ) -> Answer:
        """Sends a body as it is, for requests that no codec would build; returns the answer."""
        request = Request(method, path)
        return await self.converse(
            f"{method} {path}  {len(data or b'')} bytes", request, self._send(self.url(node), request, headers, data)
        )

    async def _send(self, base: str, request: Request, headers: Mapping[str, str], data: bytes | None = None) -> Answer:
        return await self.exchange(
            lambda: self.http, base, request, within=self.answer_timeout, headers=headers, data=data
        )

    def understood(self, _request: Request, answer: Answer) -> Answer:
        for name in wire.SECRET_FIELDS:
            if value := answer.fields.get(name):
                self.context.transcript.secrets.register(str(value))
        return answer

    def url(self, node: str | None = None) -> str:
        """Returns where a node is spoken to: over HTTP if it has both, over HTTPS if that is its only port."""
        return self.url_of(node, "http", "https")

    def keys(self) -> Keys:
        """Returns the target's Redis, to look into."""
        return Keys.of(self.context, self.deployment)

    async def metrics(self, node: str | None = None, *, owner: str = "AD-OBS-10") -> Metrics:
        """Reads the metrics page; raises in the name of `owner` if there is none."""
        page = Request("GET", str(self.context.target.observe["metrics"]))
        with self.arranging(owner):
            return await self.scrape(self.call(page, None, node=node))

    async def metrics_of_all(self) -> list[Metrics]:
        return [await self.metrics(node) for node in self.nodes]

    async def total(self, name: str, **labels: str) -> float:
        """Returns a counter summed over all nodes, since each node counts only its own."""
        return sum(metrics.total(name, **labels) for metrics in await self.metrics_of_all())

    async def sessions_of_others(self) -> float:
        """Returns the gauge of sessions before a check adds its own.

        On a target that Holdfast did not start, sessions of earlier checks may have lost their clients and end by
        themselves. This waits for that, so that they do not end during a count; those that remain belong to others.
        """
        end = time.monotonic() + self.T.timings.evaluate(self.context.catalogue.settle)
        while (count := (await self.metrics()).total("session_active_current")) and time.monotonic() < end:
            await self.T.sleep(self.T.wait_tolerance, "sessions of others end")
        return count


def _said(request: Request, user: User | None, headers: Mapping[str, str] | None, node: str | None) -> str:
    """Returns the request as a transcript shows it, with the headers that make it what it is."""
    marks = [f"[{name}: {value}]" for name, value in (headers or {}).items() if name != ADMIN_HEADER]
    if user is None and not headers:
        marks.append("[no Authorization]")
    return "  ".join([request.describe(), *marks, *([f"[{node}]"] if node else [])])


def _bearer(user: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {user.bearer}"}
