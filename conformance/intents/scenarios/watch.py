"""Watches all sessions of a scenario while faults are on, and judges their history at its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from redis.exceptions import RedisError

from holdfast.check.finding import demand
from holdfast.check.invariants import at_most, require
from holdfast.check.timeline import Moment
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.client import Intents
from holdfast.conformance.intents.scenarios.history import END, GIVEN, OVER, RUN, Life, Lives
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.wire import Request


class Watch:
    """Listens to all calls of the check, and polls every session and all leases meanwhile."""

    def __init__(self, intents: Intents, lives: Lives) -> None:
        self._intents = intents
        self._lives = lives
        intents.listeners.append(self._heard)

    def killed(self, moment: Moment) -> None:
        """Says that the worker of all sessions so far is dead: they run no longer, whatever polls show."""
        for life in self._lives.of.values():
            life.cut_off = min(life.cut_off, moment.lo)

    async def go_on(self) -> None:
        """Looks at sessions and leases again and again."""
        T = self._intents.T
        while True:
            await asyncio.gather(self._poll(), self._read_leases())
            await T.sleep(T.sample_every / 2, "the next look of the watch")

    async def _poll(self) -> None:
        alive = [life.id for life in self._lives.of.values() if life.ended > self._intents.T.now().hi]
        await asyncio.gather(*(self._intents.poll(each) for each in alive))

    async def _read_leases(self) -> None:
        store = self._intents.store
        with suppress(RedisError, OSError):
            for key in await store.leases():
                self._lives.leases.append((key, await store.lease(key)))

    def _heard(self, request: Request, answer: Answer) -> None:
        if request.path == wire.INTENTS and isinstance(request.body, dict):
            self._intent(request.body, answer)
        elif answer.state and (life := self._lives.of.get(request.path.removeprefix(f"{wire.SESSIONS}/"))):
            life.polled(answer, runs=answer.state in self._intents.running_states)

    def _intent(self, body: dict[str, Any], answer: Answer) -> None:
        if body.get("type") == wire.STOP:
            if life := self._lives.of.get(str(body.get("sessionId"))):
                life.cut_off = min(life.cut_off, answer.sent)
        elif answer.status == 202 and answer.session_id and body.get("serviceRef"):
            params = body.get("params") or {}
            profile = str(body.get("profileID") or params.get("profile") or "")
            fresh = Life(answer.session_id, str(body["serviceRef"]), profile)
            life = self._lives.of.setdefault(answer.session_id, fresh)
            life.named.append(Moment(answer.sent, answer.received))

    async def judge(self, slots: int | None = None) -> None:
        """Judges everything that was seen; `slots` is how many tuner slots the target has."""
        T, lives = self._intents.T, self._lives
        one = partial(at_most, acquire=RUN, release=END)
        require(await asyncio.to_thread(one, lives.of_channels(), 1))
        if slots is not None:
            require(await asyncio.to_thread(one, lives.of_slots(), slots))
        require(await asyncio.to_thread(at_most, lives.of_keys(), 1, acquire=GIVEN, release=OVER))
        left = sorted(lives.left_over(T.lease_ttl + T.lease_slack))
        demand(not left, "no lease beyond its life time without a live owner", "; ".join(left), unsafe=True)


@asynccontextmanager
async def watching(intents: Intents, *, grace: float = 0.0, slots: int | None = None) -> AsyncIterator[Watch]:
    """Watches all sessions of the check during the block, and judges their history after it.

    `grace` is how long a session may be shown as running after it has lost its leases.
    """
    watch = Watch(intents, Lives(grace))
    looking = intents.beside(watch.go_on())
    yield watch
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
    await watch.judge(slots)
