"""Storms: schedules drawn over a deployment, or a user's own, carried out by the fault plane.

What must hold: every fault of a storm can be proven. A canary through a link to the Redis ends at the Redis, so these
links and the Redis must not be struck at the same time: neither fault could be proven. The same holds for a UDP link
and the node behind it. (`_hides` says which two hide each other.) Three measures see to that:

- a drawn storm strikes either links or the Redis, besides nodes; the seed decides which. Where the target has UDP
  links, every other storm strikes those in place of nodes;
- a user's schedule that plans both at once is refused (`_unseen`);
- when a schedule is carried out, proofs take time of their own and windows move, so the two wait for each other
  (`_Turns`).

A link is healed as a whole, and of a Redis that is down nothing else can be seen, so all faults of one link, or of the
Redis, share one slot: they take turns too (`CARRIED`). Only `rebind`, which leaves nothing on the link, may come while
another fault is there.

Client links of TCP are not drawn: the clients of a storm that was written for nodes and Redis do not use them. Those of
UDP are, because the clients have no other means to be struck.

Steps of a schedule become faults of the plane here (`_Hands`): it keeps the window of each step that is in force, and
heals a step that lasts no time at once, because the schedule never asks for that.
"""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Self

from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.execute import MonotonicClock, run
from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.chaos.schedules.offer import offer_of
from holdfast.chaos.schedules.schedule import Place, Planned, Schedule, ScheduleError, Step, Subject
from holdfast.chaos.schedules.text import dump, load
from holdfast.chaos.schedules.validate import problems
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target
from holdfast.target.fault import Fault, Strength, Window
from holdfast.target.link_urls import CLIENT, REDIS, link_name

# Left out: faults that lose acknowledged data (failover, empty) or that take most of a storm's time.
DRAWN = (
    "delay", "stall", "refuse", "cut", "loss", "duplicate", "reorder", "corrupt", "rebind",
    "kill", "stop", "down", "frozen", "slow",
)  # fmt: skip
# The known kinds, with one slot for all faults of a link or of the Redis; `rebind` may come at any time.
CARRIED: Mapping[str, Kind] = {
    name: kind if Place.NODE in kind.on else replace(kind, slot=name if name == "rebind" else "its turn")
    for name, kind in KINDS.items()
}

# The end of a link to the Redis, or to one server of a set.
_SERVER = re.compile(rf"-{REDIS}\d*$")


def load_for(target: Target, path: Path) -> Schedule:
    """Read a user's schedule; raise ScheduleError, with all problems, if this target can't have it."""
    schedule = load(path, CARRIED)
    if found := [*problems(schedule, offer_of(target), CARRIED), *_unseen(schedule)]:
        raise ScheduleError("\n".join(f"{path}: {problem}" for problem in found))
    return schedule


def _stands(subject: Subject, deployment: Deployment) -> bool:
    """Return whether the deployment, which may have fewer nodes than its target, has it and a storm may draw it."""
    if subject.place not in (Place.LINK, Place.UDP):
        return subject.name in deployment.nodes or subject.name == REDIS
    try:
        name = link_name(subject.name, {node: each.urls for node, each in deployment.nodes.items()})
    except ValueError:  # of a node that does not stand here
        return False
    if name.end == CLIENT:
        return subject.place is Place.UDP
    return name.end == REDIS or name.end in deployment.nodes  # stubs and Sentinels are for scenarios


def _struck(standing: Sequence[Subject], seed: int, deployment: Deployment) -> list[Subject]:
    other = Place.LINK if seed % 2 or deployment.store is None else Place.STORE
    datagrams = any(one.place is Place.UDP for one in standing) and seed // 2 % 2
    return [one for one in standing if one.place in (Place.UDP if datagrams else Place.NODE, other)]


def _apart(standing: Sequence[Subject], seed: int) -> list[Subject]:
    if seed % 2:
        return [one for one in standing if one.place in (Place.LINK, Place.UDP)]
    nodes = [one for one in standing if one.place is Place.NODE]
    return [nodes[seed // 2 % len(nodes)]]


def _hides(one: Subject, other: Subject) -> bool:
    """Return whether a fault on `one` keeps canaries from proving one on the link `other`."""
    if one.place is Place.STORE:
        return other.place is Place.LINK and _SERVER.search(other.name) is not None
    if one.place is not Place.NODE or other.place is not Place.UDP:
        return False
    ends, _, _ = other.name.partition(".")  # b is behind a-b.quic, and a behind a-client.quic
    return ends == f"{one.name}-{CLIENT}" or ends.endswith(f"-{one.name}")


def _unseen(schedule: Schedule) -> Iterator[str]:
    for one, other in combinations(schedule.planned(), 2):
        for hiding, hidden in ((one, other), (other, one)):
            if _hides(hiding.step.on, hidden.step.on) and one.overlaps(other):
                yield _both(hiding, hidden)


def _both(hiding: Planned, link: Planned) -> str:
    what = "the Redis" if hiding.step.on.place is Place.STORE else "the node"
    return (
        f"step {link.step.name}: at: {link.step.on} would be struck while {hiding.step.name} is on {what} behind it, "
        "and of both at once neither could be proven; let one begin when the other has ended"
    )


@dataclass(frozen=True)
class ScheduledStorm:
    """A schedule in the time of a run, and as it is `written`, in the spec's."""

    schedule: Schedule
    written: Schedule

    @classmethod
    def of(cls, written: Schedule, scale: float) -> Self:
        return cls(written.scaled(scale), written)

    @classmethod
    def drawn(cls, deployment: Deployment, seed: int, seconds: float, scale: float, strength: Strength) -> Self:
        """Draw a storm from what the target offers; a node that can't be started again is not killed."""
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
        for strikes in range(strength.strikes, 1, -1):  # try fewer where the rests leave no room for all
            with contextlib.suppress(ScheduleError):
                return cls.of(fitted(seed, strikes), scale)
        return cls.of(fitted(seed, 1), scale)

    def lines(self) -> Sequence[str]:
        return self.schedule.describe().splitlines()

    def text(self) -> str:
        return dump(self.written)

    async def run(
        self, inject: Callable[[Fault], Awaitable[Window]], heal: Callable[[Window], Awaitable[None]]
    ) -> None:
        await run(self.schedule, _Hands(inject, heal), MonotonicClock(), known=CARRIED)


class _Hands:
    """Translates the steps of a schedule into faults and their windows."""

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
        if step.lasts is None:  # the schedule will not ask for its healing
            await self.heal(step)

    async def heal(self, step: Step) -> None:
        if window := self._windows.pop(step.name, None):
            try:
                await self._take(window)
            finally:
                await self._turns.end(step.on)


class _Turns:
    """Keeps two that hide each other from being struck at the same time, also when proofs delay the plan."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._struck: list[Subject] = []

    async def begin(self, subject: Subject) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: not any(_exclude(subject, other) for other in self._struck))
            self._struck.append(subject)

    async def end(self, subject: Subject) -> None:
        async with self._changed:
            self._struck.remove(subject)
            self._changed.notify_all()


def _exclude(one: Subject, other: Subject) -> bool:
    return _hides(one, other) or _hides(other, one)
