"""Faults of the Redis as a whole: gone, frozen, slow for everyone, replaced by its replica or cut off from it."""

import asyncio
import contextlib
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from holdfast.chaos.canary import Canary, Gone, RedisQuestion, stored
from holdfast.chaos.linkfaults import HEALED, SILENCE, LinkFault, answers
from holdfast.deployment import Deployment, Link, Store
from holdfast.fault import Receipt

# A replica tries again every second, and then has to load what it missed.
FOLLOWS = 10.0


def port_of(store: Store) -> int:
    return urlsplit(store.url).port or 6379


@dataclass(frozen=True)
class StoreDown:
    """Redis killed; healing starts it again, with its data or without."""

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
        return Receipt("redis: accepts connections although it was killed", proven=False)

    async def heal(self) -> Receipt:
        await self.store.restart(empty=self.empty)
        seen = await answers(self.port, RedisQuestion)
        return Receipt(f"redis: back{' without its data' if self.empty else ''}, {seen.describe()}", seen.answered)


@dataclass(frozen=True)
class StoreFrozen:
    """Redis stopped in its tracks: it accepts, through the kernel, and answers nothing."""

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
    """One fault on several links at once, proven on each."""

    parts: Sequence[LinkFault]

    @classmethod
    async def put(cls, parts: Sequence[LinkFault]) -> Self:
        await asyncio.gather(*(part.put() for part in parts))
        return cls(parts)

    async def proof(self) -> Receipt:
        return _joined(await asyncio.gather(*(part.proof() for part in self.parts)))

    async def heal(self) -> Receipt:
        return _joined(await asyncio.gather(*(part.heal() for part in self.parts)))


def _joined(receipts: Sequence[Receipt]) -> Receipt:
    return Receipt("; ".join(one.seen for one in receipts), all(one.proven for one in receipts))


@dataclass(frozen=True)
class FailedOver:
    """Another server is the primary: the old one is gone, and what goes through each link arrives at the new one."""

    old: int
    new: Store
    links: Sequence[Link]

    @classmethod
    async def put(cls, deployment: Deployment, links: Sequence[Link]) -> Self:
        gone = await deployment.fail_over()
        if deployment.store is None:
            raise RuntimeError("a deployment lost its Redis over a failover")
        return cls(port_of(gone), deployment.store, links)

    async def proof(self) -> Receipt:
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
        """Nothing to take back; every link has to lead to the new one."""
        return _joined([await self._leads_there(link) for link in self.links])

    async def _leads_there(self, link: Link) -> Receipt:
        asked: list[RedisQuestion] = []

        def ask() -> RedisQuestion:
            asked.append(RedisQuestion())
            return asked[-1]

        seen = await answers(link.port, ask)
        there = seen.answered and await stored(port_of(self.new), asked[-1])
        return Receipt(f"{link.name}: {seen.describe()}, {'from' if there else 'not from'} the new primary", there)


@dataclass(frozen=True)
class ReplicaLost:
    """The replica stands, and nothing comes to it."""

    primary: Store
    replica: Store
    link: Link

    @classmethod
    async def put(cls, deployment: Deployment) -> Self:
        replica, link = await deployment.replica()
        if deployment.store is None:
            raise RuntimeError("a replica without its primary")
        await link.cut()
        return cls(deployment.store, replica, link)

    async def proof(self) -> Receipt:
        left = await self._followers_become(0)
        return Receipt(f"redis: {left} replicas connected", left == 0)

    async def heal(self) -> Receipt:
        await self.link.heal()
        back = await self._followers_become(1) == 1
        return Receipt(f"redis: the replica is {'connected again' if back else 'not back'}", back)

    async def _followers_become(self, wanted: int) -> int:
        end = time.monotonic() + (FOLLOWS if wanted else HEALED)
        while True:
            seen = await self.primary.followers()
            if seen == wanted or time.monotonic() > end:
                return seen
            await asyncio.sleep(0.05)
