"""The leader lock L as anybody may see it, and what the suite does with it: hold it, steal it, free it.

`held` is hold-lock of the catalogue, a cluster without a leader: the harness has its own value in L and renews it for
the length of the block. `steal` puts a foreign value there once, which runs out by itself. A node that led before may
take itself for the leader until its next renewal fails: `nobody_leads` waits that out.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from redis.exceptions import RedisError

from holdfast.check.finding import Finding, Inconclusive, demand
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.messages import new_id

_MILLISECOND = 0.001
# Seconds between two samples, and parts of a lease after which the harness renews its own.
SAMPLE_EVERY, _RENEWALS = 0.1, 6
_FOREIGN, _HELD = "holdfast-foreign", "holdfast-held"


@dataclass(frozen=True)
class Sample:
    """L as it was read: its value ("" for none), the seconds it had left (None: no expiry), and when."""

    value: str
    left: float | None
    moment: Moment

    @property
    def expiry(self) -> Moment:
        """When it will have run out, as its life time announced it."""
        left = self.left or 0.0
        return Moment(self.moment.lo + left, self.moment.hi + left)

    def describe(self) -> str:
        if not self.value:
            return "no value"
        return f"{self.value}, " + ("without expiry" if self.left is None else f"{self.left:.3f} s left")


class Lock:
    """The key that makes a leader."""

    def __init__(self, base: Base) -> None:
        self._base = base
        self._bus = base.bus
        self._T = base.T
        self.key = base.names.lock

    async def sample(self) -> Sample:
        """Reads value and life time in one step."""
        asked = time.monotonic()
        value, left = await self._bus.together(("GET", self.key), ("PTTL", self.key))
        return Sample(str(value or ""), left * _MILLISECOND if left >= 0 else None, Moment(asked, time.monotonic()))

    async def value(self) -> str:
        return (await self.sample()).value

    async def type(self) -> str:
        return str(await self._bus.ask("TYPE", self.key))

    async def watch(
        self, seconds: float, why: str, look: Callable[[Sample], None] | None = None, *, every: float = SAMPLE_EVERY
    ) -> list[Sample]:
        """Samples L for so long; returns the samples. `look` raises what it finds in one."""
        samples = list[Sample]()

        async def once() -> None:
            samples.append(await self.sample())
            if look:
                look(samples[-1])

        await self._base.throughout(once, seconds, why, every=every)
        return samples

    async def taken(
        self, bound: str, *, since: Moment, other_than: str = "", owner: str = "", what: str = ""
    ) -> tuple[Sample, Moment]:
        """Waits until L has a value, other than this one if it is given; returns the sample, and when it came.

        The time is judged against the bound in a check of the row `owner`, or where none is given; else a lock that
        stays free leaves the row under test undecided.
        """
        what = what or "a new value in the lock"

        async def look() -> Sample | None:
            seen = await self.sample()
            return seen if seen.value not in ("", other_than) else None

        if not owner or self._base.judges(owner):
            return await self._base.comes(look, bound, since=since, what=what, every=SAMPLE_EVERY / 2)
        with self._base.context.arranging(owner):
            return await self._T.until(
                look, give_up=self._base.never(bound), since=since, what=what, every=SAMPLE_EVERY / 2
            )

    async def led(self) -> Sample:
        """Waits until somebody leads, as most checks want it to begin; returns the sample."""
        sample, _ = await self.taken("first_leader", since=self._T.now(), owner="CO-ROLE-01", what="a first leader")
        return sample

    async def just_renewed(self) -> Sample:
        """Waits for the next renewal; returns the sample right after it."""
        before = await self.sample()

        async def look() -> Sample | None:
            nonlocal before
            seen = await self.sample()
            renewed = seen.value == before.value and (seen.left or 0.0) > (before.left or 0.0)
            before = seen
            return seen if renewed else None

        with self._base.context.arranging("CO-LOCK-02"):
            give_up = 2 * self._T.renew_interval + self._T.tolerance
            sample, _ = await self._T.until(look, give_up=give_up, what="a renewal of the lock", every=SAMPLE_EVERY / 2)
        return sample

    # --- what the harness does with it

    async def steal(self, lease: float) -> str:
        """Puts a foreign value into L, to run out after so many seconds; returns it. `free` removes it earlier."""
        value = f"{_FOREIGN}:{new_id()}"
        await self._bus.ask("SET", self.key, value, "PX", str(round(lease / _MILLISECOND)))
        self._base.context.stack.push_async_callback(self._drop, value)
        return value

    async def free(self) -> Moment:
        """Removes L, whoever has it; returns when."""
        asked = self._T.now()
        await self._bus.ask("DEL", self.key)
        return Moment(asked.lo, time.monotonic())

    @asynccontextmanager
    async def held(self) -> AsyncIterator["Hold"]:
        """Keeps the harness's own value in L during the block, from before the nodes start if they do not run yet.

        Raises Inconclusive at its end if the value ran out for lack of renewal; that another one took its place is a
        finding.
        """
        hold = await self.hold()
        try:
            yield hold
        except BaseException:
            await hold.let_go()
            raise
        await hold.release()

    async def hold(self) -> "Hold":
        """Begins to hold L, until it is released or the check ends."""
        hold = Hold(self, self._base, f"{_HELD}:{new_id()}")
        await hold.begin()
        return hold

    async def nobody_leads(self) -> None:
        """Waits until no node can take itself for the leader any more, once the harness has its value in L."""
        await self._T.sleep(self._T.renew_interval + self._T.tolerance, "the last leader to notice")

    async def _drop(self, value: str) -> None:
        with contextlib.suppress(RedisError, OSError):
            if await self.value() == value:
                await self._bus.ask("DEL", self.key)


class Hold:
    """The harness's own value in L, renewed until it is released."""

    def __init__(self, lock: Lock, base: Base, value: str) -> None:
        self.value = value
        self.released: Moment | None = None
        self._lock = lock
        self._base = base
        self._lost = ""
        self._over = asyncio.Event()
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        await self._put()
        self._renewing = self._base.beside(self._renew())

    async def _put(self) -> None:
        await self._base.bus.ask("SET", self._lock.key, self.value, "PX", str(self._lease_ms))

    @property
    def _lease_ms(self) -> int:
        return round(self._base.T.lease / _MILLISECOND)

    async def _renew(self) -> None:
        while not self._over.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._over.wait(), self._base.T.lease / _RENEWALS)
            try:
                seen = await self._lock.value()
                if seen != self.value:
                    self._lost = seen or "no value"
                    return
                await self._base.bus.redis.pexpire(self._lock.key, self._lease_ms)
            except (RedisError, OSError):
                continue  # a Redis that is away has no lock to renew; what is there afterwards tells

    async def release(self) -> Moment:
        """Lets L go; returns when. Judges that the value was the harness's until then."""
        if self.released is None:
            self._judge(await self.let_go())
        assert self.released is not None, "it has been let go"
        return self.released

    async def let_go(self) -> str:
        """Lets L go without a judgement; returns the value that was there."""
        self._over.set()
        if self._renewing:
            await asyncio.gather(self._renewing, return_exceptions=True)
        seen = self._lost or await self._lock.value()
        asked = self._base.T.now()
        if seen == self.value:
            await self._base.bus.ask("DEL", self._lock.key)
        self.released = Moment(asked.lo, time.monotonic())
        return seen

    def _judge(self, seen: str) -> None:
        if seen in ("", "no value"):
            raise Inconclusive("the harness's value in the lock ran out, or was removed")
        if seen != self.value:
            with self._base.context.about("CO-LOCK-01"):
                raise Finding([f"{self.value} in the lock"], seen, "it was held and renewed by the harness")

    async def still(self) -> None:
        """Judges that L has the harness's value now."""
        seen = await self._lock.value()
        demand(seen == self.value, f"{self.value} in the lock", seen or "no value", "it is held by the harness")
