"""Storms: schedules drawn over a deployment, carried out by the fault plane.

A canary through a link ends at the Redis behind it, so a storm strikes either links or the Redis: of both at once
neither could be proven. Which of the two, the seed decides; nodes may be struck in either.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from holdfast.chaos.schedule import Place, Schedule, Step, Subject
from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.execute import MonotonicClock, run
from holdfast.chaos.schedules.kinds import KINDS, Kind
from holdfast.deployment import Deployment
from holdfast.fault import Fault, Window

ON_LINKS = ("delay", "stall", "refuse", "cut")
ON_NODES = ("kill", "stop")
ON_STORE = ("down", "frozen")
STRIKES = 4
# A link is healed as a whole, so its faults take turns.
_ONE_AT_A_TIME: Mapping[str, Kind] = {
    name: replace(kind, slot="link") if name in ON_LINKS else kind for name, kind in KINDS.items()
}


@dataclass(frozen=True)
class ScheduledStorm:
    schedule: Schedule

    @classmethod
    def drawn(cls, deployment: Deployment, seed: int, seconds: float, scale: float) -> Self:
        nodes = sorted(deployment.nodes)
        struck, kinds = [Subject(Place.NODE, node) for node in nodes], [*ON_NODES]
        if seed % 2 or deployment.store is None:
            struck += [Subject(Place.LINK, f"{node}-redis") for node in nodes]
            kinds += ON_LINKS
        else:
            struck.append(Subject(Place.STORE, "redis"))
            kinds += ON_STORE
        # Faults take real time to be proven, so the shortest are as long as that whatever the scale.
        shortest = max(seconds / 10, 1 / scale)
        longest = max(shortest, seconds / 3)
        drawn = draw(seed, STRIKES, struck, kinds, seconds, shortest=shortest, longest=longest, known=_ONE_AT_A_TIME)
        return cls(drawn.scaled(scale))

    def lines(self) -> Sequence[str]:
        return self.schedule.describe().splitlines()

    async def run(
        self, inject: Callable[[Fault], Awaitable[Window]], heal: Callable[[Window], Awaitable[None]]
    ) -> None:
        await run(self.schedule, _Hands(inject, heal), MonotonicClock(), known=_ONE_AT_A_TIME)


class _Hands:
    """Schedules speak of steps, the plane of faults and their windows."""

    def __init__(self, inject: Callable[[Fault], Awaitable[Window]], heal: Callable[[Window], Awaitable[None]]) -> None:
        self._put, self._take = inject, heal
        self._windows: dict[str, Window] = {}

    async def inject(self, step: Step) -> None:
        self._windows[step.name] = await self._put(Fault(step.fault, step.on.name, step.options()))

    async def heal(self, step: Step) -> None:
        if window := self._windows.pop(step.name, None):
            await self._take(window)
