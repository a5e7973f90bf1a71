"""The fault plane as a check uses it: a fault that is not proven decides nothing.

Whatever was found while a fault should have been in force, without its receipt the check ends as
`inconclusive(fault not applied)`.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from holdfast.context import Context
from holdfast.fault import Fault, FaultPlane, Injected, Option, Strength, Window
from holdfast.finding import Inconclusive

# Schedules of one seed; the next seed's come behind them.
_DRAWS = 1_000_003


class Faults:
    """The fault plane of a check's deployment, with every window noted in transcript and report."""

    def __init__(self, context: Context, plane: FaultPlane) -> None:
        self._context = context
        self._plane = plane
        self._open: list[tuple[Window, Injected]] = []

    @classmethod
    async def provide(cls, context: Context) -> Self:
        faults = cls(context, context.deployment.fault_plane())
        context.stack.push_async_callback(faults.heal_all)
        return faults

    async def client_url(self, node: str) -> str:
        return await self._plane.client_url(node)

    @asynccontextmanager
    async def during(self, kind: str, subject: str, **options: Option) -> AsyncIterator[Window]:
        """In force while the block lasts. What is found inside counts only if the receipts prove the fault."""
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
        """What the harness itself does to the target, such as a burst; the block adds the receipts."""
        window = Window(Fault(what, subject), time.monotonic(), time.monotonic())
        self._context.windows.append(window)
        try:
            yield window
        except Exception as found:
            window.healing = window.healed = time.monotonic()
            if window.receipts:  # else it came before the stimulus was complete, and stands without it
                self._insist(window, found)
            raise
        window.healing = window.healed = time.monotonic()
        self._insist(window)

    async def storm(self, draw: int, seconds: float, strength: Strength = Strength()) -> None:  # noqa: B008 - frozen
        """The schedule of this number, drawn with the run's seed, to its end; every fault of it has to be proven."""
        run = self._context.seed // 1000  # the same at a second attempt
        storm = self._plane.storm(run * _DRAWS + draw, seconds, self._context.timings.scale, strength)
        for line in storm.lines():
            self._context.transcript.add("!", line)
        began = len(self._context.windows)
        await storm.run(self._put, self.heal)
        for window in self._context.windows[began:]:
            self._insist(window)

    async def inject(self, kind: str, subject: str, **options: Option) -> Window:
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
        """Look for the proof a last time while the fault is there, take it back, and see that it is gone."""
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
        if not window.proven:
            missing = "; ".join(receipt.seen for receipt in window.receipts if not receipt.proven) or "nothing was seen"
            raise Inconclusive(f"fault not applied: {window.fault.describe()}: {missing}") from found
