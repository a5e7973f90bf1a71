"""Watches all sessions of a scenario while faults are on, and judges their history at its end."""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from redis.exceptions import RedisError

from holdfast.check.finding import Inconclusive, demand
from holdfast.check.history import History
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
        self._turn = 0
        intents.listeners.append(self._heard)

    def killed(self, moment: Moment, *, before: float = math.inf) -> None:
        """Says that workers may have died then: sessions named before run no longer for certain, whatever polls show.

        Those that were named later than `before` are not meant; without it, all so far are.
        """
        for life in self._lives.of.values():
            if any(named.lo < before for named in life.named):
                life.cut_off = min(life.cut_off, moment.lo)

    async def go_on(self) -> None:
        """Looks at sessions and leases again and again."""
        T = self._intents.T
        while True:
            await asyncio.gather(self._poll(), self._read_leases())
            await T.sleep(T.sample_every / 2, "the next look of the watch")

    async def _poll(self) -> None:
        alive = [life.id for life in self._lives.of.values() if life.ended > self._intents.T.now().hi]
        self._turn += 1
        node = self._intents.apis[self._turn % len(self._intents.apis)]
        await asyncio.gather(*(self._intents.poll(each, node=node) for each in alive))

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
        ran = sum(each.what == RUN for each in lives.of_channels())
        self._intents.context.transcript.note(f"{len(lives.of)} sessions were given, {ran} surely ran for a while")
        await _hold(lives.of_channels(), RUN, END, 1)
        if slots is not None:
            await _hold(lives.of_slots(), RUN, END, slots)
        await _hold(lives.of_keys(), GIVEN, OVER, 1)
        left = sorted(lives.left_over(T.lease_ttl + T.lease_slack))
        demand(not left, "no lease beyond its life time without a live owner", "; ".join(left), unsafe=True)


async def _hold(history: History, acquire: str, release: str, count: int) -> None:
    if acquire not in history.names:
        raise Inconclusive(f"no session was seen for long enough to tell whether at most {count} hold at a time")
    require(await asyncio.to_thread(partial(at_most, acquire=acquire, release=release), history, count))


@asynccontextmanager
async def watching(intents: Intents, *, grace: float = 0.0, slots: int | None = None) -> AsyncIterator[Watch]:
    """Watches all sessions of the check during the block, and judges their history after it.

    `grace` is how long a session may be shown as running after it has lost its leases.
    """
    watch = Watch(intents, Lives(grace))
    looking = intents.beside(watch.go_on())
    yield watch
    await intents.T.sleep(4 * intents.T.sample_every, "the last looks of the watch")
    looking.cancel()
    with suppress(asyncio.CancelledError):
        await looking
    await watch.judge(slots)
