"""A node on a clock that jumps from timer to timer, with a store that agrees to everything and writes it down."""

import asyncio
import heapq
import json
from collections.abc import Awaitable, Callable, Coroutine
from itertools import count
from typing import Any

from holdfast.reference.coordinator.clock import Clock
from holdfast.reference.coordinator.components import Components
from holdfast.reference.coordinator.drain import Exit
from holdfast.reference.coordinator.messages import Message
from holdfast.reference.coordinator.node import Node
from holdfast.reference.coordinator.ownership import Job
from holdfast.reference.coordinator.settings import Settings
from holdfast.reference.coordinator.store import Store
from holdfast.reference.shared.redislink import Call, RedisAway
from holdfast.reference.shared.scriptstore import Facts

SETTLED = 50
"""After so many turns of the loop everything that needs no timer has happened."""


class Jumping(Clock):
    def __init__(self) -> None:
        self.moment = 0.0
        self.timers: list[tuple[float, int, asyncio.Future[None]]] = []
        self.numbers = count()

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self.timers, (self.moment + seconds, next(self.numbers), woken))
        await woken

    async def settle(self) -> None:
        for _ in range(SETTLED):
            await asyncio.sleep(0)

    async def jump(self, until: float) -> None:
        """Lets everything happen that happens up to this moment."""
        await self.settle()
        while self.timers and self.timers[0][0] <= until:
            moment, _, woken = heapq.heappop(self.timers)
            if not woken.done():
                self.moment = max(self.moment, moment)
                woken.set_result(None)
                await self.settle()
        self.moment = until


class Agreeing(Store):
    """Notes each command with its moment. What scripts answer, a test may change; `away` is a Redis that is gone."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        self.said: list[tuple[float, tuple[Any, ...]]] = []
        self.ran: list[tuple[float, str, Facts]] = []
        self.away = False
        self.answers: dict[str, Any] = {
            "mark": {"marked": True},
            "release": {"released": True},
            "resume": {"jobs": []},
            "find_orphans": {"orphans": []},
            "renew_lock": {"renewed": True},
            "release_lock": {"released": True},
            "republish": {"result": 1},
        }

    async def run(self, name: str, facts: Facts, call: Call | None = None) -> Any:  # noqa: ARG002  # there is no Redis
        await self.reach()
        self.ran.append((self.node.clock.now(), name, facts))
        return self.answers[name]

    async def call(self, *words: str | bytes | float) -> Any:
        await self.reach()
        self.said.append((self.node.clock.now(), words))
        return set() if words[0] == "SMEMBERS" else b"OK"

    async def reach(self) -> None:
        await asyncio.sleep(0)
        if self.away:
            raise RedisAway("for the test")


class Stays(Exit):
    """Notes when the process would have been ended."""

    limit = 0.0

    def within(self, seconds: float) -> None:
        self.limit = seconds


class Alone:
    """One node, its clock and its store."""

    def __init__(self, **settings: Any) -> None:
        components = Components(clock=Jumping, store=Agreeing, exit=Stays)
        self.node = Node(Settings(node_id="me", **settings), components)
        self.clock: Any = self.node.clock
        self.store: Any = self.node.store

    def own(self, *names: str) -> None:
        for name in names:
            self.node.registry.add(Job(name, f"h-{name}", 1))
        listed = [{"jobId": name, "historyId": f"h-{name}", "epoch": 1} for name in names]
        self.store.answers["resume"] = {"jobs": listed}

    def begin(self, work: Coroutine[Any, Any, Any]) -> "asyncio.Task[Any]":
        return asyncio.ensure_future(work)

    def hear(self, node_id: str, jobs: int = 0, status: str = "Active", role: str = "Follower") -> None:
        said = {"nodeId": node_id, "jobCount": jobs, "status": status, "role": role}
        self.node.topics.heard_until = self.clock.now()
        self.node.health.hear(Message(said))

    def acknowledge(self, job: str) -> None:
        self.node.acks.on_ack(Message({"jobId": job, "newOwner": "other"}))

    def published(self, channel: str) -> list[tuple[float, dict[str, Any]]]:
        """Returns the messages on a channel with their moments."""
        words = [(at, each) for at, each in self.store.said if each[0] == "XADD" and each[1] == channel]
        return [(at, json.loads(str(each[-1]))) for at, each in words]

    def ran(self, script: str) -> list[float]:
        return [at for at, name, _ in self.store.ran if name == script]


async def ends(task: Awaitable[Any], clock: Jumping, look: Callable[[], None] = lambda: None) -> float:
    """Returns the moment, to a tenth of a second, at which the work ends; `look` is called at each tenth."""
    done = asyncio.ensure_future(task)
    while not done.done():
        assert clock.moment < 1000
        await clock.jump(round(clock.moment + 0.1, 1))
        look()
    return clock.moment
