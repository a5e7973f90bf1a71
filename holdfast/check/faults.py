"""Faults as a check uses them: injected, proven, healed and recorded.

The plane of the deployment (`chaos`, through the protocols of `holdfast.target.fault`) knows how to inject a fault;
this module keeps the rule that **an unproven fault decides nothing**. Each fault has a `Window` with four moments in
order: asked for, in force, healing, healed. A receipt is taken twice, once before the healing (was the fault really
there?) and once after it (is it gone?). If either is missing or not proven, the check ends as `inconclusive(fault not
applied)`, whatever it found and even if it found nothing: a check that held without its fault has shown nothing.

`during` is the usual form. `inject` and `heal` are for faults that overlap in other ways than blocks do, `storm` for a
schedule drawn from the seed, `stimulus` for what the harness itself does to the target. Whatever a check leaves open is
healed when its context is closed, last injected first.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, Unsafe
from holdfast.target.fault import Fault, FaultPlane, Injected, Option, Strength, Window

# How many schedules can be drawn from one seed of a run; the next seed's follow after them.
_DRAWS = 1_000_003


class Faults:
    """The faults of a check's deployment; every window is noted in transcript and report."""

    def __init__(self, context: Context, plane: FaultPlane) -> None:
        self._context = context
        self._plane = plane
        self._open: list[tuple[Window, Injected]] = []

    @classmethod
    async def provide(cls, context: Context) -> Self:
        faults = cls(context, context.deployment.fault_plane())
        context.stack.push_async_callback(faults.heal_all)
        return faults

    async def client_url(self, node: str, url: str = "") -> str:
        """Returns a URL of the node that leads through the link `<node>-client`, where faults can be put on it.

        `url` is the key of one of its URLs, whose link is `<node>-client.<url>`; without it, the main URL.
        """
        return await self._plane.client_url(node, url)

    @asynccontextmanager
    async def during(self, kind: str, subject: str, **options: Option) -> AsyncIterator[Window]:
        """Keeps a fault in force during the block. Raises Inconclusive if it was not proven.

        That replaces a finding too, unless it is `Unsafe`, which needs no fault to be one.
        """
        window = await self.inject(kind, subject, **options)
        try:
            yield window
        except Exception as found:
            await self.heal(window)
            self._insist(window, found)
            raise
        await self.heal(window)
        self._insist(window)

    @asynccontextmanager
    async def stimulus(self, what: str, subject: str) -> AsyncIterator[Window]:
        """Records what the harness itself does to the target, such as a burst; the block adds the receipts."""
        window = Window(Fault(what, subject), time.monotonic(), time.monotonic())
        self._context.windows.append(window)
        try:
            yield window
        except Exception as found:
            window.healing = window.healed = time.monotonic()
            if window.receipts:  # without any, the finding came before the stimulus was complete and needs no proof
                self._insist(window, found)
            raise
        window.healing = window.healed = time.monotonic()
        self._insist(window)

    async def storm(self, draw: int, seconds: float, strength: Strength = Strength()) -> None:  # noqa: B008 - frozen
        """Runs schedule number `draw` of the run's seed to its end. Raises Inconclusive if a fault was not proven."""
        run = self._context.seed // 1000  # the rest numbers repeats and attempts, which all draw the same schedule
        storm = self._plane.storm(run * _DRAWS + draw, seconds, self._context.timings.scale, strength)
        for line in storm.lines():
            self._context.transcript.add("!", line)
        self._context.schedule = storm.text()
        began = len(self._context.windows)
        await storm.run(self._put, self.heal)
        for window in self._context.windows[began:]:
            self._insist(window)

    async def inject(self, kind: str, subject: str, **options: Option) -> Window:
        """Puts a fault in force until `heal` gets its window. The caller sees to it that the receipts are judged."""
        return await self._put(Fault(kind, subject, options))

    async def _put(self, fault: Fault) -> Window:
        window = Window(fault, time.monotonic())
        injected = await self._plane.inject(window.fault)
        window.in_force = time.monotonic()
        self._context.windows.append(window)
        self._context.transcript.add("!", window.fault.describe())
        self._open.append((window, injected))
        return window

    async def heal(self, window: Window) -> None:
        """Takes the proof of the fault while it is still there, removes it, and takes the proof that it is gone."""
        injected = next((each for open_, each in self._open if open_ is window), None)
        if injected is None:
            return
        self._open = [(open_, each) for open_, each in self._open if open_ is not window]
        window.receipts.append(await injected.proof())
        window.healing = time.monotonic()
        window.receipts.append(await injected.heal())
        window.healed = time.monotonic()
        for receipt in window.receipts:
            self._context.transcript.note(f"receipt: {receipt.seen}{'' if receipt.proven else ' (NOT PROVEN)'}")

    async def heal_all(self) -> None:
        for window, _ in reversed(self._open):
            await self.heal(window)

    @staticmethod
    def _insist(window: Window, found: Exception | None = None) -> None:
        if not window.proven and not isinstance(found, Unsafe):
            missing = "; ".join(receipt.seen for receipt in window.receipts if not receipt.proven) or "nothing was seen"
            raise Inconclusive(f"fault not applied: {window.fault.describe()}: {missing}") from found
