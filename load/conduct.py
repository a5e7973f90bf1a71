"""Conducts one campaign against a deployment that stands: starts the generator, puts the faults, waits for the end.

It runs on the harness's loop, never in the generator's process. What the generator writes is read back as it grows, so
the progress that is shown is what will be judged.
"""

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.check.finding import NotObservable
from holdfast.load.campaign import Campaign, Numbers, PlannedFault
from holdfast.load.extra import LoadError, generator
from holdfast.load.fold import Folded, Follower
from holdfast.load.judge import FaultWindow, proven, recovered
from holdfast.load.plan import Plan
from holdfast.target.deployment import StartError
from holdfast.target.fault import Fault, FaultPlane

_LOOK_EVERY = 0.5
# What a worker has seen is in the file after so many seconds.
_TOLD_WITHIN = 2.5
# Who is not back after so many times the limit has missed it, by however much.
_MISSED = 3.0
# Seconds for the generator's start and for arranging, and those for its end.
_START, _END = 90.0, 90.0


class Started(Protocol):
    """A process that was started for us."""

    log: Path
    returncode: int | None

    async def wait(self, timeout: float | None = None) -> int: ...  # noqa: ASYNC109 - as the launcher has it

    async def end(self, within: float) -> None: ...


Spawn = Callable[[list[str]], Awaitable[Started]]
# Called with what was seen so far, the seconds since the start, and how many faults there were.
Progress = Callable[[Folded, float, int], None]
# Returns the name of a node or link that a subject such as `leader` means at this moment.
Resolve = Callable[[str], Awaitable[str]]


@dataclass(frozen=True)
class Distribution:
    """Who makes the load: processes of this machine, or workers of others that come to this master."""

    processes: int = 1
    master: bool = False
    bind_host: str = "127.0.0.1"
    port: int = 5557

    def words(self) -> list[str]:
        if self.master:
            address = ["--master-bind-host", self.bind_host, "--master-bind-port", str(self.port)]
            return ["--master", *address, "--expect-workers", str(self.processes), *self._users()]
        if self.processes > 1:
            return [
                *("--processes", str(self.processes), "--master-bind-host", "127.0.0.1"),
                *("--master-bind-port", str(self.port), "--master-port", str(self.port), *self._users()),
            ]
        return self._users()

    def _users(self) -> list[str]:
        """One user in each worker: it starts all requests of that worker."""
        return ["-u", str(self.processes), "-r", str(self.processes)]


@dataclass(frozen=True)
class Work:
    """What is to be done."""

    campaign: Campaign
    numbers: Numbers
    plan: Plan
    distribution: Distribution


@dataclass(frozen=True)
class Hands:
    """What it is done with: who starts processes, puts faults, shows progress, and knows whom a subject means."""

    spawn: Spawn
    plane: Callable[[], FaultPlane]
    progress: Progress
    resolve: Resolve


async def conduct(work: Work, hands: Hands) -> tuple[Folded, list[FaultWindow]]:
    """Runs the campaign to its end; returns what was seen and which faults there were."""
    plan, seen, windows = work.plan, Follower(Path(work.plan.out)), list[FaultWindow]()
    file = Path(plan.out).with_suffix(".plan.json")
    plan.write(file)
    process = await hands.spawn(generator(plan.key, [*work.distribution.words(), "--plan", str(file)]))
    faults: asyncio.Task[None] | None = None
    deadline = time.monotonic() + _START + work.numbers.arrivals.seconds + 4 * plan.patience + _END
    try:
        while process.returncode is None and time.monotonic() < deadline:
            with contextlib.suppress(TimeoutError):
                await process.wait(_LOOK_EVERY)
            folded = seen.look()
            if folded.began is not None:
                hands.progress(folded, time.monotonic() - folded.began, len(windows))
                faults = faults or asyncio.create_task(_inject(work, hands, folded.began, seen, windows))
        if faults:
            await _ended(faults)
    finally:
        if faults and not faults.done():
            faults.cancel()
        await process.end(_LOOK_EVERY)
    folded = seen.look()
    if folded.began is None and not folded.refused:
        folded.refused = f"the generator did not start: {_last_words(process)}"
    return folded, windows


async def _ended(faults: asyncio.Task[None]) -> None:
    """Waits for the faults to be healed, so that the target is whole again when the campaign ends."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(faults, _END)


def _last_words(process: Started) -> str:
    with contextlib.suppress(OSError):
        lines = [line for line in process.log.read_text("utf-8", "replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else "it said nothing"
    return "it said nothing"


async def _inject(work: Work, hands: Hands, began: float, seen: Follower, windows: list[FaultWindow]) -> None:
    """Puts each fault at its time, one after the other, with the receipts of the fault plane.

    A campaign that proves a recovery ends as soon as that is decided; then no further arrivals are needed either.
    """
    numbers, draw = work.numbers, random.Random(work.plan.seed)
    planned = [
        (numbers.of(fault.at) + turn * numbers.of(fault.every), fault)
        for fault in work.campaign.faults
        for turn in range(fault.times)
    ]
    for at, fault in sorted(planned, key=lambda pair: pair[0]):
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        later = draw.uniform(0, numbers.of(fault.spread))
        windows.append(await _put(fault, (later, numbers.of(fault.lasts)), hands, began))
        await _felt(work, seen, windows)
        if proven(work.campaign, numbers, seen.folded, windows):
            break
    if any(recovery.quantile < 1 for recovery in work.campaign.recoveries):
        work.plan.enough.touch()


async def _felt(work: Work, seen: Follower, windows: list[FaultWindow]) -> None:
    """Waits until the last fault is recovered from, and told of, or is surely a miss."""
    if not work.campaign.recoveries:
        return
    limit = max(work.numbers.latency(each.within) for each in work.campaign.recoveries)
    until = time.monotonic() + _MISSED * limit
    await asyncio.sleep(_TOLD_WITHIN)
    while time.monotonic() < until:
        history = seen.folded.history
        if all(recovered(each, history, windows[-1]) for each in work.campaign.recoveries):
            return
        await asyncio.sleep(_LOOK_EVERY)


async def _put(planned: PlannedFault, times: tuple[float, float], hands: Hands, began: float) -> FaultWindow:
    """Puts one fault; one that can't be put has no receipt, so what rests on it stays undecided."""
    at = time.monotonic() - began
    try:
        subject = await hands.resolve(planned.subject)
        await asyncio.sleep(times[0])
        return await _one_fault(Fault(planned.kind, subject, dict(planned.options)), times[1], hands, began)
    except (LoadError, NotObservable, StartError, ValueError) as problem:
        what = f"{planned.kind} {planned.subject}"
        return FaultWindow(what, at, at, at, time.monotonic() - began, proven=False, receipts=(str(problem),))


async def _one_fault(fault: Fault, lasts: float, hands: Hands, began: float) -> FaultWindow:
    asked = time.monotonic()
    injected = await hands.plane().inject(fault)
    in_force = time.monotonic()
    await asyncio.sleep(lasts)
    receipts = [await injected.proof()]
    healing = time.monotonic()
    receipts.append(await injected.heal())
    return FaultWindow(
        fault.describe(),
        asked=asked - began,
        in_force=in_force - began,
        healing=healing - began,
        healed=time.monotonic() - began,
        proven=all(receipt.proven for receipt in receipts),
        receipts=tuple(receipt.seen for receipt in receipts),
    )
