"""The driver: our client side of the admission protocol, and the only thing that checks talk through."""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Self, TypeVar

import aiohttp

from holdfast.conformance.admission import wire
from holdfast.conformance.admission.footprint import Footprint
from holdfast.conformance.admission.identities import Character, Identities, User
from holdfast.conformance.admission.instance import Held, Instance, moment, outcomes
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer, Request
from holdfast.context import Context
from holdfast.deployment import Deployment
from holdfast.finding import Absent, Finding, NotApplicable, expect
from holdfast.observe import Metrics
from holdfast.spectime import POLL, SpecTime
from holdfast.timeline import Moment

__all__ = ["Admission", "Held", "Instance", "moment", "outcomes"]

R = TypeVar("R")
# So many requests at once keep a node busy; more only pile up in its accept queue and ours.
PARALLEL = 64
# Arranging is no burst: more in flight would only hold up the other checks.
ARRANGING = 8
# Long past every deadline of the spec: a call that takes this long has no answer.
_PATIENCE_FACTOR, _PATIENCE_EXTRA = 1.5, 3.0


class Admission:
    """One target as a check sees it. Fresh users, characters and instances keep checks apart in a shared deployment."""

    def __init__(self, context: Context, T: SpecTime, http: aiohttp.ClientSession) -> None:
        self.context = context
        self.T = T
        self.deployment: Deployment = context.deployment
        self.nodes: list[str] = list(context.deployment.nodes)
        self.build = str(context.target.dialect.get("current_build", "dev-build"))
        self.features = context.target.dialect
        self.http = http
        self.listeners: list[Callable[[Request, Answer], None]] = []
        self._footprint = Footprint()
        self.identities = Identities(context.target.credentials)
        self._codec = wire.DIALECTS[str(context.target.dialect.get("name", "contract"))]
        self.admin_headers = {"X-Admin-Token": str(context.target.credentials.get("admin_token", ""))}
        self.patience = T.attempt_deadline * _PATIENCE_FACTOR + _PATIENCE_EXTRA
        context.transcript.secrets.register(self.admin_headers["X-Admin-Token"], "admin-token")

    @classmethod
    async def provide(cls, context: Context) -> Self:
        # Who signed a target's certificate is its operator's matter; checks ask whether the way is encrypted.
        connector = aiohttp.TCPConnector(limit=0, force_close=False, ssl=False)
        http = aiohttp.ClientSession(connector=connector, auto_decompress=False)
        context.stack.push_async_callback(http.close)
        driver = cls(context, await context.get(SpecTime), http)
        if not context.target.startable:
            context.stack.push_async_callback(driver.tidy_up)
        return driver

    async def tidy_up(self) -> None:
        """Leave nothing on a target that later checks share with this one."""
        for calls in self._footprint.farewells():
            await self.parallel([partial(self._exchange, self.url(), call, _bearer(user)) for call, user in calls])

    # ------------------------------------------------------------- subjects

    async def instance(self, capacity: int = 10, *, node: str | None = None, name: str | None = None) -> Instance:
        instance = Instance(self, name or f"i-{uuid.uuid4().hex[:12]}")
        await instance.put(capacity=capacity, node=node)
        return instance

    async def character(self, user: User | None = None, *, node: str | None = None) -> Character:
        """A fresh character of a fresh user, unless a user is given."""
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
        """Drop a socket and leave the target the moment that it takes to notice."""
        dropped = await socket.drop()
        await self.T.sleep(self.T.wait_tolerance, "the target to notice the drop")
        return dropped

    def stale_bound(self) -> float:
        """By when a silent session is gone, from its last sign of life on; some targets send it through grace."""
        T, via_grace = self.T, self.features.get("stale_via_grace")
        return (T.stale_reclaim_grace if via_grace else T.stale_reclaim) + T.slack

    # ------------------------------------------------------------- calls

    async def administer(self, request: Request, *, node: str | None = None) -> Answer:
        """An administration call; it has to be there, since without it nothing can be arranged."""
        answer = await self.call(request, None, node=node, headers=self.admin_headers)
        if answer.status in (404, 405, 501):
            raise Absent(["2xx"], f"{request.method} {request.path}: {answer.describe()}")
        if not 200 <= answer.status < 300:
            said = f"{request.method} {request.path}: {answer.describe()}"
            raise Finding(["2xx"], said, "while arranging the check", late=answer.late)
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
        base = url or self.url(node)
        said = {**(headers or {}), **request.headers, **(_bearer(user) if user else {})}
        self.context.transcript.sent(lambda: f"{request.describe()}{f'  [{node}]' if node else ''}")
        answer = self._codec.read(await self._exchange(base, request, said))
        self._remember_secrets(answer)
        self._footprint.note(request, user, answer)
        self.context.transcript.received(answer.describe)
        for hear in self.listeners:
            hear(request, answer)
        return answer

    async def raw(
        self, method: str, path: str, *, node: str | None = None, data: bytes | None = None, headers: Mapping[str, str]
    ) -> Answer:
        """Bytes as they are, for requests that no codec would build."""
        self.context.transcript.sent(f"{method} {path}  {len(data or b'')} bytes")
        request = Request(method, path)
        answer = await self._exchange(self.url(node), request, headers, data)
        self.context.transcript.received(answer.describe)
        for hear in self.listeners:
            hear(request, answer)
        return answer

    async def _exchange(
        self, base: str, request: Request, headers: Mapping[str, str], data: bytes | None = None
    ) -> Answer:
        sent = time.monotonic()
        body: dict[str, Any] = {"data": data} if data is not None else {}
        if data is None and request.body is not None:
            body = {"json": request.body}
        try:
            with self.context.call(self.patience) as seconds:
                async with self.http.request(
                    request.method,
                    base + request.path,
                    params=request.query or None,
                    headers=headers,
                    timeout=aiohttp.ClientTimeout(total=seconds),
                    allow_redirects=False,
                    **body,
                ) as reply:
                    parsed, text = wire.parse_body(await reply.read())
                    return Answer(reply.status, reply.headers, parsed, text, sent, time.monotonic())
        except TimeoutError:
            return Answer(0, {}, None, f"after {time.monotonic() - sent:.1f} s", sent, time.monotonic())
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return Answer(0, {}, None, f"{type(error).__name__}: {error}", sent, time.monotonic())

    def url(self, node: str | None = None, kind: str = "http") -> str:
        chosen = self.deployment.nodes[node or self.nodes[0]]
        if kind not in chosen.urls:
            raise NotApplicable(f"the descriptor declares no {kind} URL")
        return chosen.urls[kind]

    async def parallel(self, work: Iterable[Callable[[], Awaitable[R]]], at_once: int = PARALLEL) -> list[R]:
        """All of it, so many at a time, results in order."""
        gate = asyncio.Semaphore(at_once)

        async def one(call: Callable[[], Awaitable[R]]) -> R:
            async with gate:
                return await call()

        return await asyncio.gather(*(one(call) for call in work))

    def beside(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Work that goes on beside the check, and ends with it at the latest."""
        task = asyncio.ensure_future(work)
        self.context.stack.push_async_callback(_end, task)
        return task

    def _remember_secrets(self, answer: Answer) -> None:
        for name in wire.SECRET_FIELDS:
            if value := answer.fields.get(name):
                self.context.transcript.secrets.register(str(value))

    # ------------------------------------------------------------- other windows

    def keys(self) -> Keys:
        """The target's Redis, to look into."""
        return Keys.of(self.context)

    async def metrics(self, node: str | None = None) -> Metrics:
        answer = await self.call(Request("GET", str(self.context.target.observe["metrics"])), None, node=node)
        if answer.status != 200:
            raise Finding(["200 with Prometheus text"], answer.describe())
        return Metrics.parse(answer.text)

    async def metrics_of_all(self) -> list[Metrics]:
        return [await self.metrics(node) for node in self.nodes]

    async def total(self, name: str, **labels: str) -> float:
        """A counter is each node's own, so that only the sum over the nodes says what was counted."""
        return sum(metrics.total(name, **labels) for metrics in await self.metrics_of_all())

    async def sessions_of_others(self) -> float:
        """What the gauge of sessions stands at before a check adds its own, once it stands still.

        On a target that we did not start, sessions of earlier checks may have lost their clients: they end by
        themselves, and not in the middle of a count. What is there after that is somebody else's and stays.
        """
        end = time.monotonic() + self.T.timings.evaluate(self.context.catalogue.settle)
        while (count := (await self.metrics()).total("session_active_current")) and time.monotonic() < end:
            await self.T.sleep(self.T.wait_tolerance, "sessions of others end")
        return count

    async def settles(self, look: Callable[[], Awaitable[R]], *legal: Any, why: str) -> R:
        """Counters and log lines may be a moment behind the answer; what is not right by `prompt_never` is wrong."""
        end = time.monotonic() + self.T.prompt_never
        while (seen := await look()) not in legal and time.monotonic() < end:
            await self.T.sleep(2 * POLL, why)
        expect(seen, *legal, why=why)
        return seen

    def events(self, **wanted: Any) -> list[dict[str, Any]]:
        """Event lines of all nodes, in order of each node's log, with these field values."""
        return [record for node in self.deployment.nodes.values() for record in node.events(**wanted)]

    async def event(self, *, within: float, **wanted: Any) -> tuple[dict[str, Any], Moment]:
        """The first event with these field values, waited for."""
        name = " ".join(f"{key}={value}" for key, value in wanted.items())

        async def look() -> dict[str, Any] | None:
            return next(iter(self.events(**wanted)), None)

        return await self.T.until(look, give_up=within, what=f"the event {name}")


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _bearer(user: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {user.bearer}"}
