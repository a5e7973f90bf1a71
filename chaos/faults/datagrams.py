"""Faults on one UDP link, each with the receipt of canaries that went through it and of the relay's counters.

The order is that of TCP links: `put` asks through the calm link first, and only then puts the fault in force; `proof`
asks again, on the same flow and on a new one; `heal` takes the fault back and asks until all is answered. If the calm
link left a question open, nothing that is seen later proves the fault.

What proves which fault, on both flows:

- `loss`, `duplicate`, `reorder`, `corrupt` strike a share of the datagrams. So many questions are asked that a fault
  which is there shows with near certainty (`SURE`), and the tally must fit the share: a loss of 5 % that loses half is
  another fault. Where a direction is named, the relay's counters tell the two apart: what it dropped, sent more often
  than it had received, or altered. Overtaking is not counted there; it is seen by the canaries alone.
- an altered question may be answered all the same, since a server looks at the head of it only. So `corrupt` upwards is
  proven by the counter alone, downwards by the counter and by answers that are none.
- `delay`: every answer is late by at least the delay. `rate`: the slowest answer is late by what the bytes
  need, less the time that it took to send them.
- `stall`: nothing is answered, and the counters say in which direction it was dropped. A stall of one direction is a
  one-way black hole: for `down`, the questions still got through.
- `rebind`: the relay has changed the source port of the flow, and the flow is answered again. It may be put on a link
  that has another fault, of which nobody knows whether it answers; then the counter alone proves it.
"""

import asyncio
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from holdfast.chaos.faults.datagram_canary import DatagramCanary, DatagramQuestion, Tally
from holdfast.chaos.faults.link import HEALED, SEEN_SLOW, SILENCE, SLOWED
from holdfast.chaos.proxied import SPOILS, DatagramLink
from holdfast.chaos.toxiproxy import Fields
from holdfast.target.fault import Fault, Receipt

KNOWN = (*SPOILS, "delay", "rate", "stall", "rebind")
CALM = 20  # questions through the calm link, and through the healed one
FEW = 5
FEWEST, MOST = 60, 4000
AT_ONCE = 4  # questions against a rate
# The probability with which a fault that is in force is taken for one that is not.
SURE = 1e-6
# Besides the share, what a busy machine may lose: its receive buffers are not endless.
SLACK = 0.05
SIGMAS = 6
# How long to wait for answers where some will never come.
PATIENCE = 0.5
# Of the altered answers, at least this part is seen to be altered.
NOTICED = 0.5
_SIDES = {"up": ("upstream",), "down": ("downstream",), "both": ("upstream", "downstream")}


class DatagramFault:
    """One fault on one UDP link, watched by a flow that was there before it and one that begins under it."""

    def __init__(self, fault: Fault, link: DatagramLink, ask: Callable[[], DatagramQuestion]) -> None:
        if fault.kind not in KNOWN:
            raise ValueError(f"{fault.describe()}: a UDP link knows {', '.join(KNOWN)}")
        self._fault = fault
        self._link = link
        self._ask = ask
        self._before = DatagramCanary(link.port, ask())
        self._calm: Tally
        self._counted: _Counted
        self._alone = True

    async def put(self) -> "DatagramFault":
        self._alone = await self._link.clear()
        self._calm = await self._before.ask(CALM, HEALED if self._alone else PATIENCE)
        self._counted = _Counted.of(await self._link.tally())
        try:
            await self._apply()
        except BaseException:
            self._before.close()
            raise
        return self

    async def proof(self) -> Receipt:
        if self._alone and self._calm.lost:
            return Receipt(f"{self._link.name}: {self._calm.describe()} even before the fault", proven=False)
        fresh = DatagramCanary(self._link.port, self._ask())
        asked = (self._times(), self._within(), AT_ONCE if self._fault.kind == "rate" else 1)
        old, new = await asyncio.gather(self._before.ask(*asked), fresh.ask(*asked))
        fresh.close()
        since = _Counted.of(await self._link.tally()).since(self._counted)
        text = (
            f"{self._link.name}: {self._calm.describe()} before; under {self._fault.kind} on the open flow "
            f"{old.describe()}, on a new one {new.describe()}; the relay {since.describe()}"
        )
        return Receipt(text, self._fits(old) and self._fits(new) and self._counts(since))

    async def heal(self) -> Receipt:
        if self._fault.kind != "rebind":  # which leaves nothing on the link, but another fault may be there
            await self._link.heal()
        self._before.close()
        if not await self._link.clear():
            return Receipt(f"{self._link.name}: has gone on under another fault", proven=True)
        seen = await self._answered()
        return Receipt(f"{self._link.name}: healed, {seen.describe()}", not seen.lost)

    async def _answered(self) -> Tally:
        """Ask on new flows until every question is answered or HEALED has passed: the server may be coming back."""
        end = time.monotonic() + HEALED
        while True:
            canary = DatagramCanary(self._link.port, self._ask())
            seen = await canary.ask(CALM, PATIENCE)
            canary.close()
            if not seen.lost or time.monotonic() > end:
                return seen
            await asyncio.sleep(0.02)

    async def _apply(self) -> None:
        options, link = self._fault.options, self._link
        match self._fault.kind:
            case "delay":
                await link.delay(float(options["seconds"]), float(options.get("jitter", 0.0)), self._direction)
            case "rate":
                await link.rate(math.ceil(float(options["kilobytes"])), self._direction)
            case "stall":
                await link.stall(self._direction)
            case "rebind":
                await link.rebind()
            case kind:
                await link.spoil(kind, self._share, self._direction)

    @property
    def _direction(self) -> str:
        return str(self._fault.options.get("direction", "both"))

    @property
    def _share(self) -> float:
        return float(self._fault.options["share"])

    @property
    def _rate(self) -> float:
        return float(self._fault.options["kilobytes"]) * 1000

    def _times(self) -> int:
        """Return how many questions make the fault show with near certainty."""
        match self._fault.kind:
            case "delay" | "stall" | "rebind":
                return FEW
            case "rate":
                return min(MOST, math.ceil(SLOWED * self._rate / self._slowed(self._calm)))
            case kind:
                share = self._share * (NOTICED if kind == "corrupt" else 1)
                needed = math.log(SURE) / math.log1p(-share) if 0 < share < 1 else FEWEST
                return min(MOST, max(FEWEST, math.ceil(needed)))

    def _within(self) -> float:
        match self._fault.kind:
            case "delay":
                return 2 * self._span(1) + HEALED
            case "rate":
                return 4 * SLOWED + HEALED
            case "stall":
                return SILENCE
            case "rebind" if self._alone:
                return HEALED
        return PATIENCE

    def _span(self, sign: int) -> float:
        """Return the shortest (-1) or longest (1) time that the delay adds to a question and its answer."""
        seconds, jitter = (float(self._fault.options.get(name, 0.0)) for name in ("seconds", "jitter"))
        return len(_SIDES[self._direction]) * (seconds + sign * jitter)

    def _slowed(self, seen: Tally) -> float:
        """Return the bytes of one question that pass the slowed direction; of both, the larger count takes the time."""
        sizes = {"up": seen.up, "down": seen.down, "both": max(seen.up, seen.down)}
        return max(sizes[self._direction], 1) / max(seen.sent, 1)

    def _fits(self, seen: Tally) -> bool:
        if self._fault.kind in SPOILS:
            return self._fits_share(seen)
        match self._fault.kind:
            case "delay":
                return not seen.lost and seen.quickest >= self._span(-1) * 0.98
            case "rate":
                needed = 0.9 * self._slowed(seen) * seen.sent / self._rate - seen.sending
                return seen.slowest >= needed >= SEEN_SLOW  # the bytes of answers that came, if answers are slowed
            case "stall":
                return not seen.answered
        return not seen.lost or not self._alone  # rebind

    def _fits_share(self, seen: Tally) -> bool:
        match self._fault.kind:
            case "loss":
                return self._as_drawn(seen.lost, seen.sent) and seen.lost <= self._at_most(seen.sent)
            case "duplicate":
                return self._as_drawn(seen.again, seen.sent)
            case "reorder":
                return seen.overtaken > 0
        return self._direction == "up" or seen.damaged > 0  # corrupt

    def _struck(self) -> float:
        """Return the probability that a question, or its answer, is struck."""
        return 1 - float((1 - self._share) ** len(_SIDES[self._direction]))

    def _as_drawn(self, count: int, times: int) -> bool:
        """Return whether this number is enough for the share; fewer than one is no proof at all."""
        share = self._share  # for `both` at least this
        return count >= max(1, times * share - SIGMAS * math.sqrt(times * share * (1 - share)))

    def _at_most(self, times: int) -> float:
        share = self._struck()
        return times * (share + SLACK) + SIGMAS * math.sqrt(times * share * (1 - share))

    def _counts(self, since: "_Counted") -> bool:
        """Return whether the relay's counters confirm it, in each direction that is struck."""
        sides = _SIDES[self._direction]
        match self._fault.kind:
            case "loss":
                return all(since.dropped[side] for side in sides)
            case "stall":  # what is dropped on its way up never has an answer that could be dropped
                return bool(since.dropped[sides[0]]) and (self._direction != "down" or since.passed["upstream"] >= FEW)
            case "duplicate":
                return all(since.extra[side] > 0 for side in sides)
            case "corrupt":
                return all(since.altered[side] for side in sides)
            case "rebind":
                return since.rebinds > 0
        return True


@dataclass(frozen=True)
class _Counted:
    """The relay's counters of a link, by direction; `extra` are bytes sent on beyond those received."""

    rebinds: int
    passed: dict[str, int]
    dropped: dict[str, int]
    altered: dict[str, int]
    extra: dict[str, int]

    @classmethod
    def of(cls, tally: Fields) -> "_Counted":
        sides = {side: tally[side] for side in _SIDES["both"]}
        return cls(
            tally["connections"]["rebinds"],
            {side: each["chunks"] for side, each in sides.items()},
            {side: each["dropped_chunks"] for side, each in sides.items()},
            {side: each["altered_chunks"] for side, each in sides.items()},
            {side: each["bytes"] + each["dropped_bytes"] - each["received_bytes"] for side, each in sides.items()},
        )

    def since(self, before: "_Counted") -> "_Counted":
        return _Counted(
            self.rebinds - before.rebinds,
            *(
                {side: now[side] - then[side] for side in now}
                for now, then in (
                    (self.passed, before.passed),
                    (self.dropped, before.dropped),
                    (self.altered, before.altered),
                    (self.extra, before.extra),
                )
            ),
        )

    def describe(self) -> str:
        up, down = _SIDES["both"]
        rebound = f", rebound {self.rebinds} flows" if self.rebinds else ""
        altered = f", altered {self.altered[up]} up, {self.altered[down]} down" if any(self.altered.values()) else ""
        return (
            f"passed {self.passed[up]} datagrams up and {self.passed[down]} down, "
            f"dropped {self.dropped[up]} up, {self.dropped[down]} down{altered}{rebound}"
        )
