"""Storms: schedules drawn over a deployment, or a user's own, carried out by the fault plane.

A canary through a link ends at the Redis behind it, so at one time a storm strikes either links or the Redis: of both
neither could be proven. Of a drawn storm the seed decides which of the two; nodes may be struck in either.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, product
from pathlib import Path
from typing import Self

from holdfast.chaos.schedule import Place, Planned, Schedule, ScheduleError, Step, Subject
from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.execute import MonotonicClock, run
from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.chaos.schedules.text import load
from holdfast.chaos.schedules.validate import Offer, problems
from holdfast.deployment import Deployment
from holdfast.fault import Fault, Strength, Window
from holdfast.target import Target

# Not drawn: what loses what was acknowledged, by a failover or an emptied store, or takes most of a storm's time.
DRAWN = ("delay", "stall", "refuse", "cut", "kill", "stop", "down", "frozen", "slow")
# A link is healed as a whole, and of a Redis that is down nothing else can be seen, so their faults take turns.
CARRIED: Mapping[str, Kind] = {
    name: kind if Place.NODE in kind.on else replace(kind, slot="its turn") for name, kind in KINDS.items()
}


def load_for(target: Target, path: Path) -> Schedule:
    """A user's schedule, if this target can have it."""
    schedule = load(path, CARRIED)
    if found := [*problems(schedule, offer_of(target), CARRIED), *_unseen(schedule)]:
        raise ScheduleError("\n".join(f"{path}: {problem}" for problem in found))
    return schedule


def offer_of(target: Target) -> Offer:
    names = [node.name for node in target.nodes]
    ways = [*target.links.get("proxies", {}), *(f"{name}-client" for name in names)]
    if target.gets_redis:
        ways += [f"{name}-redis" for name in names]
    if target.tells_peers:
        ways += [f"{a}-{b}" for a, b in permutations(names, 2)]
    subjects = {Subject(Place.NODE, name) for name in names} | {Subject(Place.LINK, way) for way in ways}
    if target.gets_redis:
        subjects.add(Subject(Place.STORE, "redis"))
    return Offer(frozenset(subjects), target.capabilities())


def _stands(subject: Subject, deployment: Deployment) -> bool:
    """An own deployment may have fewer nodes than the target; links of clients are not drawn."""
    names = subject.name.split("-") if subject.place is Place.LINK else [subject.name]
    return "client" not in names and all(name in deployment.nodes or name == "redis" for name in names)


def _struck(standing: Sequence[Subject], seed: int, deployment: Deployment) -> list[Subject]:
    other = Place.LINK if seed % 2 or deployment.store is None else Place.STORE
    return [one for one in standing if one.place in (Place.NODE, other)]


def _apart(standing: Sequence[Subject], seed: int) -> list[Subject]:
    if seed % 2:
        return [one for one in standing if one.place is Place.LINK]
    nodes = [one for one in standing if one.place is Place.NODE]
    return [nodes[seed // 2 % len(nodes)]]


def _unseen(schedule: Schedule) -> Iterator[str]:
    planned = schedule.planned()
    stores = [one for one in planned if one.step.on.place is Place.STORE]
    links = [one for one in planned if _place(one.step.on) is Place.LINK]
    for store, link in product(stores, links):
        if store.overlaps(link):
            yield _both(store, link)


def _both(store: Planned, link: Planned) -> str:
    return (
        f"step {link.step.name}: at: {link.step.on} would be struck while {store.step.name} is on the Redis behind it, "
        "and of both at once neither could be proven; begin later or earlier"
    )


@dataclass(frozen=True)
class ScheduledStorm:
    schedule: Schedule

    @classmethod
    def drawn(cls, deployment: Deployment, seed: int, seconds: float, scale: float, strength: Strength) -> Self:
        """Of what the target offers; a node that can't be started again is not killed."""
        offer = offer_of(deployment.target)
        standing = [one for one in sorted(offer.subjects) if _stands(one, deployment)]
        struck = _apart(standing, seed) if strength.apart else _struck(standing, seed, deployment)
        kinds = [name for name in DRAWN if any(offer.takes(CARRIED[name], one) for one in struck)]
        # Faults take real time to be proven, so the shortest are as long as that whatever the scale.
        longest = strength.longest or seconds / 3
        shortest = min(max(seconds / 10, 1 / scale), longest)
        fitted = partial(
            draw,
            subjects=struck,
            kinds=kinds,
            duration=seconds,
            shortest=shortest,
            longest=longest,
            rest=strength.rest,
            known=CARRIED,
        )
        for strikes in range(strength.strikes, 1, -1):  # fewer, where rests leave no room for all
            with contextlib.suppress(ScheduleError):
                return cls(fitted(seed, strikes).scaled(scale))
        return cls(fitted(seed, 1).scaled(scale))

    def lines(self) -> Sequence[str]:
        return self.schedule.describe().splitlines()

    async def run(
        self, inject: Callable[[Fault], Awaitable[Window]], heal: Callable[[Window], Awaitable[None]]
    ) -> None:
        await run(self.schedule, _Hands(inject, heal), MonotonicClock(), known=CARRIED)


class _Hands:
    """Schedules speak of steps, the plane of faults and their windows."""

    def __init__(self, inject: Callable[[Fault], Awaitable[Window]], heal: Callable[[Window], Awaitable[None]]) -> None:
        self._put, self._take = inject, heal
        self._windows: dict[str, Window] = {}
        self._turns = _Turns()

    async def inject(self, step: Step) -> None:
        await self._turns.begin(step.on)
        try:
            self._windows[step.name] = await self._put(Fault(step.fault, step.on.name, step.options()))
        except BaseException:
            await self._turns.end(step.on)
            raise
        if step.lasts is None:  # nobody will ask for its healing
            await self.heal(step)

    async def heal(self, step: Step) -> None:
        if window := self._windows.pop(step.name, None):
            try:
                await self._take(window)
            finally:
                await self._turns.end(step.on)


class _Turns:
    """The Redis and the links to it are not struck at once. By plan they are not, but proofs take time of their own."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._struck = Counter[Place]()

    async def begin(self, subject: Subject) -> None:
        other = _OTHERS.get(_place(subject))
        async with self._changed:
            await self._changed.wait_for(lambda: other is None or not self._struck[other])
            self._struck[_place(subject)] += 1

    async def end(self, subject: Subject) -> None:
        async with self._changed:
            self._struck[_place(subject)] -= 1
            self._changed.notify_all()


_OTHERS = {Place.STORE: Place.LINK, Place.LINK: Place.STORE}


def _place(subject: Subject) -> Place:
    """Links that do not lead to the Redis keep nobody waiting, nor do nodes."""
    elsewhere = subject.place is Place.LINK and not subject.name.endswith("-redis")
    return Place.NODE if elsewhere else subject.place
