"""Faults of the Redis as a whole: gone, frozen, slow for everyone, replaced by its replica or cut off from it.

Canaries ask the Redis at its own port, not through a link: what is proven is the state of the server. The exceptions
are `slow`, a delay on every link to it, proven on each; and the end of a failover, where every link has to lead to the
new primary: a value that was set through the link must be found there.

What a heal brings back: `down` the server with its data, `empty` the server without them, `frozen` a server that goes
on where it was stopped, `replica-lost` a replica that has caught up. A failover is not taken back: the old server is
gone for good, and the deployment has the new one.
"""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from holdfast.chaos.faults.canary import Canary, Gone, stored
from holdfast.chaos.faults.link import HEALED, SILENCE, LinkFault, answers
from holdfast.chaos.faults.questions import RedisQuestion
from holdfast.target.deployment import Deployment, Link, Store
from holdfast.target.fault import Receipt

# Seconds for a replica to be back: it tries to reconnect every second, and then loads what it missed.
FOLLOWS = 10.0


def port_of(store: Store) -> int:
    return urlsplit(store.url).port or 6379


@dataclass(frozen=True)
class StoreDown:
    """A Redis that is gone: stopped with its data saved, or killed (`empty`); healing starts it again."""

    store: Store
    empty: bool
    port: int

    @classmethod
    async def put(cls, store: Store, *, empty: bool) -> "StoreDown":
        await (store.kill() if empty else store.stop(keep=True))
        return cls(store, empty, port_of(store))

    async def proof(self) -> Receipt:
        canary = Canary(self.port, RedisQuestion())
        try:
            await canary.open()
        except Gone as seen:
            return Receipt(f"redis: {seen}", proven=True)
        finally:
            canary.close()
        return Receipt("redis: accepts connections although it was ended", proven=False)

    async def heal(self) -> Receipt:
        await self.store.restart(empty=self.empty)
        seen = await answers(self.port, RedisQuestion)
        return Receipt(f"redis: back{' without its data' if self.empty else ''}, {seen.describe()}", seen.answered)


@dataclass(frozen=True)
class StoreFrozen:
    """A Redis under SIGSTOP: the kernel accepts connections for it, and nothing is answered."""

    store: Store
    port: int

    @classmethod
    async def put(cls, store: Store) -> "StoreFrozen":
        await store.pause()
        return cls(store, port_of(store))

    async def proof(self) -> Receipt:
        canary = Canary(self.port, RedisQuestion())
        seen = await canary.ask(SILENCE)
        canary.close()
        return Receipt(f"redis: {seen.describe()} while frozen", not seen.answered and not seen.gone)

    async def heal(self) -> Receipt:
        with contextlib.suppress(ProcessLookupError):
            await self.store.resume()
        seen = await answers(self.port, RedisQuestion)
        return Receipt(f"redis: thawed, {seen.describe()}", seen.answered)


@dataclass(frozen=True)
class Together:
    """The same fault on several links at once, proven on each."""

    faults: Sequence[LinkFault]

    @classmethod
    async def put(cls, faults: Sequence[LinkFault]) -> Self:
        await asyncio.gather(*(fault.put() for fault in faults))
        return cls(faults)

    async def proof(self) -> Receipt:
        return _joined(await asyncio.gather(*(fault.proof() for fault in self.faults)))

    async def heal(self) -> Receipt:
        return _joined(await asyncio.gather(*(fault.heal() for fault in self.faults)))


def _joined(receipts: Sequence[Receipt]) -> Receipt:
    """Make one receipt of several; it is proven if all are."""
    return Receipt("; ".join(one.seen for one in receipts), all(one.proven for one in receipts))


@dataclass(frozen=True)
class FailedOver:
    """Another server is the primary; the old one is gone, and every link leads to the new one."""

    old: int
    new: Store
    links: Sequence[Link]

    @classmethod
    async def put(cls, deployment: Deployment, links: Sequence[Link]) -> Self:
        gone = await deployment.fail_over()
        if deployment.store is None:
            raise RuntimeError("the deployment has no Redis after a failover")
        return cls(port_of(gone), deployment.store, links)

    async def proof(self) -> Receipt:
        """Prove that the old primary is gone and that the new one says of itself that it leads."""
        canary = Canary(self.old, RedisQuestion())
        try:
            await canary.open()
        except Gone as seen:
            leads = await self.new.leads()
            text = (
                f"redis: the old primary: {seen}; the one at port {port_of(self.new)} {'leads' if leads else 'follows'}"
            )
            return Receipt(text, leads)
        canary.close()
        return Receipt("redis: the old primary still accepts connections", proven=False)

    async def heal(self) -> Receipt:
        """Prove that every link leads to the new primary; a failover is not taken back."""
        return _joined([await self._leads_there(link) for link in self.links])

    async def _leads_there(self, link: Link) -> Receipt:
        """Set a value through the link, and look for it in the new primary."""
        asked: list[RedisQuestion] = []

        def ask() -> RedisQuestion:
            asked.append(RedisQuestion())
            return asked[-1]

        seen = await answers(link.port, ask)
        there = seen.answered and await stored(port_of(self.new), asked[-1])
        return Receipt(f"{link.name}: {seen.describe()}, {'from' if there else 'not from'} the new primary", there)


@dataclass(frozen=True)
class ReplicaLost:
    """Replicas that run while the link to their primary is cut, as seen by the primary, which had `had` of them."""

    primary: Store
    replica: Store
    link: Link
    had: int

    @classmethod
    async def put(cls, deployment: Deployment) -> Self:
        """Cut the link on which the replica follows; it is started first, in sync, if there is none yet."""
        replica, link = await deployment.replica()
        if deployment.store is None:
            raise RuntimeError("the deployment has a replica and no primary")
        had = await deployment.store.followers()
        await link.cut()
        return cls(deployment.store, replica, link, had)

    async def proof(self) -> Receipt:
        """Prove that no replica is connected; the cut is noticed within HEALED seconds."""
        left = await self._followers_become(0)
        return Receipt(f"redis: {left} replicas connected", left == 0)

    async def heal(self) -> Receipt:
        await self.link.heal()
        back = await self._followers_become(self.had) == self.had
        return Receipt(f"redis: the replica is {'connected again' if back else 'not back'}", back)

    async def _followers_become(self, wanted: int) -> int:
        """Wait until the primary has this many replicas; return how many it has in the end."""
        end = time.monotonic() + (FOLLOWS if wanted else HEALED)
        while True:
            seen = await self.primary.followers()
            if seen == wanted or time.monotonic() > end:
                return seen
            await asyncio.sleep(0.05)
