"""The driver: the client side of the admission protocol. Checks talk to the target only through it.

It keeps checks apart on a deployment that they share: each asks for fresh users, characters and instances, so no check
can see another's locks, sessions or places. What can't be kept apart (gauges over all sessions, whole logs) is for
checks with a deployment of their own. On a target that Holdfast did not start, the driver also notes every session and
place that it was given and ends them all when the check ends (`footprint`).

A call always returns an `Answer`, in the words of the contract whatever dialect the target speaks; status 0 means that
there was none. Secrets of an answer are registered before it is written into the transcript. A call that only arranges
something raises instead: where nothing can be arranged, nothing can be judged.
"""

import time
import uuid
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar, Self

import aiohttp

from holdfast.check.context import Context
from holdfast.check.finding import Absent, Finding
from holdfast.check.observe import Metrics
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.footprint import Footprint
from holdfast.conformance.admission.identities import Character, Identities, User
from holdfast.conformance.admission.instance import Held, Instance, outcomes
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.http import HttpDriver
from holdfast.conformance.shared.wire import Request

__all__ = ["Admission", "Held", "Instance", "outcomes"]

# Requests in flight that keep a node busy; more would only pile up in its accept queue.
PARALLEL = 64
# Requests in flight while arranging; more would slow down the other checks.
ARRANGING = 8
# A call without an answer after this many attempt deadlines and seconds has none.
_TIMEOUT_FACTOR, _TIMEOUT_EXTRA = 1.5, 3.0


class Admission(HttpDriver[Answer]):
    """One target as a check sees it. Fresh users, characters and instances keep checks apart in a shared deployment."""

    answer: ClassVar[type[shared.Answer]] = Answer
    at_once: ClassVar[int | None] = PARALLEL
    settled: ClassVar[str] = "prompt_never"

    def __init__(self, context: Context, T: SpecTime, http: aiohttp.ClientSession) -> None:
        super().__init__(context, T)
        self.build = str(context.target.dialect.get("current_build", "dev-build"))
        self.features = context.target.dialect
        self.http = http
        self._footprint = Footprint()
        self.identities = Identities(context.target.credentials)
        self._codec = wire.DIALECTS[str(context.target.dialect.get("name", "contract"))]
        self.admin_headers = {"X-Admin-Token": str(context.target.credentials.get("admin_token", ""))}
        self.answer_timeout = T.attempt_deadline * _TIMEOUT_FACTOR + _TIMEOUT_EXTRA
        context.transcript.secrets.register(self.admin_headers["X-Admin-Token"], "admin-token")

    @classmethod
    async def provide(cls, context: Context) -> Self:
        # Certificates are not verified: checks judge whether a connection is encrypted, not who signed for it.
        connector = aiohttp.TCPConnector(limit=0, force_close=False, ssl=False)
        http = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        context.stack.push_async_callback(http.close)
        driver = cls(context, await context.get(SpecTime), http)
        if not context.target.startable:
            context.stack.push_async_callback(driver.tidy_up)
        return driver

    async def tidy_up(self) -> None:
        """Ends all sessions and places of this check, on a target that later checks use too."""
        for calls in self._footprint.endings():
            await self.parallel([partial(self._send, self.url(), call, _bearer(user)) for call, user in calls])

    async def instance(self, capacity: int = 10, *, node: str | None = None, name: str | None = None) -> Instance:
        """Registers a fresh instance with this capacity."""
        instance = Instance(self, name or f"i-{uuid.uuid4().hex[:12]}")
        await instance.put(capacity=capacity, node=node)
        return instance

    async def character(self, user: User | None = None, *, node: str | None = None) -> Character:
        """Registers a fresh character, of a fresh user unless one is given."""
        owner = user or self.user()
        character = Character(str(uuid.uuid4()), owner)
        await self.register(character, node=node)
        return character

    async def characters(self, count: int, user: User | None = None) -> list[Character]:
        return await self.parallel([lambda: self.character(user)] * count, ARRANGING)

    async def register(self, character: Character, *, node: str | None = None, **fields: Any) -> Answer:
        known = {"userId": character.user.id, "suspended": False, **fields}
        return await self.administer(wire.put_character(character.id, **known), node=node)

    async def suspend(self, character: Character, *, on: bool = True, node: str | None = None, **fields: Any) -> Answer:
        return await self.register(character, node=node, suspended=on, **fields)

    def user(self) -> User:
        user = self.identities.user()
        self.context.transcript.secrets.register(user.bearer, "bearer")
        return user

    async def lose(self, socket: Socket) -> Moment:
        """Drops a socket and waits until the target can have noticed; returns when it was dropped."""
        dropped = await socket.drop()
        await self.T.sleep(self.T.wait_tolerance, "the target to notice the drop")
        return dropped

    def stale_bound(self) -> float:
        """Returns the seconds by which a session is gone after its last sign of life; some targets add a grace."""
        T, via_grace = self.T, self.features.get("stale_via_grace")
        return (T.stale_reclaim_grace if via_grace else T.stale_reclaim) + T.slack

    async def administer(self, request: Request, *, node: str | None = None) -> Answer:
        """Makes an administration call. Raises Absent or Finding if it fails: nothing can be arranged without it."""
        answer = await self.call(request, None, node=node, headers=self.admin_headers)
        if answer.status in (404, 405, 501):
            raise Absent(["2xx"], f"{request.method} {request.path}: {answer.describe()}")
        if not 200 <= answer.status < 300:
            seen = f"{request.method} {request.path}: {answer.describe()}"
            raise Finding(["2xx"], seen, "while arranging the check", late=answer.late)
        return answer

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
            answer = self._codec.read(await self._send(base, request, sent))
            self._footprint.note(request, user, answer)
            return answer

        return await self.converse(lambda: f"{request.describe()}{f'  [{node}]' if node else ''}", request, exchange())

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

    def url(self, node: str | None = None, kind: str = "http") -> str:
        return self.url_of(node, kind)

    def keys(self) -> Keys:
        """Returns the target's Redis, to look into."""
        return Keys.of(self.context)

    async def metrics(self, node: str | None = None) -> Metrics:
        page = Request("GET", str(self.context.target.observe["metrics"]))
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


def _bearer(user: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {user.bearer}"}
