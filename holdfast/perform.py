"""One attempt of one check on one deployment, and the verdict that comes of it."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.audit import Audit
from holdfast.catalogue import Catalogue
from holdfast.check import CheckSpec
from holdfast.context import Context
from holdfast.deployment import Deployment
from holdfast.finding import LONGEST, Finding, Inconclusive, NotApplicable, NotObservable, PartError
from holdfast.patience import Patience
from holdfast.target import Target
from holdfast.timings import Timings
from holdfast.transcript import shortened
from holdfast.verdict import Kind, Verdict

_CLEANUP_LIMIT = 5.0
# So many times its limit a check may get on top on a machine that holds everybody back.
_MOST_GRANTED = 2.0
# What we, the nodes and their Redis stood in run queues, added up, as a share of the time that went by.
_OVERLOAD, _OVERLOAD_SEEN_AFTER = 1.0, 1.0
# Who stood still for so long saw nothing meanwhile, renewed nothing, and kept everybody waiting who relies on us.
_STOOD_STILL = 1.0


class _Overdue(Exception):  # noqa: N818 - not an error yet
    """The check did not end in time."""


@dataclass
class Outcome:
    verdict: Verdict
    attempt: int
    reason: str = ""
    kind: Kind | None = None
    expected: list[str] = field(default_factory=list)
    seen: str | None = None
    started: float = 0.0
    duration: float = 0.0
    transcript: list[dict[str, Any]] = field(default_factory=list)
    dropped: int = 0
    timings: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)

    def transcript_lines(self) -> list[str]:
        return [f"{line['t'] / 1000:+9.3f}  {line['dir']} {line['text']}" for line in self.transcript]

    late: bool = False
    excusable: bool = True

    def fields(self) -> dict[str, Any]:
        return {
            "attempt": self.attempt,
            "verdict": str(self.verdict),
            "kind": str(self.kind) if self.kind else None,
            "reason": self.reason,
            "expected": self.expected,
            "seen": self.seen,
            "started_s": round(self.started, 4),
            "duration_s": round(self.duration, 4),
            "transcript": self.transcript,
            "transcript_dropped": self.dropped,
            "timings": self.timings,
            "warnings": self.warnings,
            "steps": self.steps,
            "faults": self.faults,
        }


def deadline(planned: float) -> float:
    """Past this a check hangs: one and a half times what it plans to wait, and ten seconds to work."""
    return 1.5 * planned + 10


def broken(attempt: int, reason: str) -> Outcome:
    return Outcome(Verdict.ERROR, attempt, reason)


async def perform(
    spec: CheckSpec,
    deployment: Deployment,
    *,
    target: Target,
    catalogue: Catalogue,
    timings: Timings,
    params: Mapping[str, Any],
    planned: float,
    audit: Audit,
    seed: int,
    say_waiting: Callable[[str, float], None],
    lease: Callable[[], Awaitable[Deployment]],
    attempt: int,
    patience: Patience,
    transcribe: bool = True,
) -> Outcome:
    """Without `transcribe` the transcript of a pass is left out: of twenty repeats one tells as much as all."""
    context = Context(spec, target, catalogue, timings, deployment, audit, seed, say_waiting, lease, patience=patience)
    started = time.monotonic()
    try:
        outcome = await _judged(context, params, planned)
        _excuse_if_we_stood_still(outcome, context, started)
        _excuse_if_overloaded(outcome, context, started)
        if outcome.verdict not in (Verdict.PASS, Verdict.ERROR) and (trouble := await deployment.trouble()):
            outcome = Outcome(Verdict.ERROR, 0, trouble)
        if outcome.verdict is not Verdict.PASS:
            _tell_deaths(outcome, context)
    finally:
        # Shielded: a check that is cancelled, because its mutant is dead already, still closes what it opened.
        await asyncio.shield(_clean_up(context))
    outcome.attempt, outcome.started, outcome.duration = attempt, started, time.monotonic() - started
    redact = context.transcript.secrets.redact
    outcome.reason, outcome.seen = redact(outcome.reason), redact(outcome.seen) if outcome.seen is not None else None
    outcome.expected = [redact(text) for text in outcome.expected]
    outcome.warnings = [redact(text) for text in context.warnings]
    if transcribe or outcome.verdict is not Verdict.PASS:
        outcome.transcript, outcome.dropped = context.transcript.lines(), context.transcript.dropped
    outcome.timings = context.measured
    outcome.faults = [window.fields(context.transcript.started) for window in context.windows]
    steps = sorted(context.steps, key=lambda step: float(step["start_ms"]))  # recorded as they end
    outcome.steps = [{**step, "name": redact(step["name"])} for step in steps]
    return outcome


async def _judged(context: Context, params: Mapping[str, Any], planned: float) -> Outcome:  # noqa: PLR0911 - one line a verdict
    bad = Verdict.FAIL if context.spec.is_must(context.catalogue) else Verdict.WARN
    limit = deadline(planned)
    try:
        await _within(limit, context, _run(context, params))
    except Finding as finding:
        told = (str(finding), finding.kind, finding.expected, finding.seen)
        return Outcome(bad, 0, *told, late=finding.late, excusable=finding.excusable)
    except AssertionError as error:
        said = shortened("; ".join(line.strip() for line in str(error).splitlines()), LONGEST)
        return Outcome(bad, 0, said, Kind.VIOLATES, [], said)
    except Inconclusive as undecided:
        return Outcome(Verdict.INCONCLUSIVE, 0, str(undecided))
    except NotApplicable as unfit:
        return Outcome(Verdict.NOT_APPLICABLE, 0, str(unfit))
    except NotObservable as hidden:
        return Outcome(Verdict.NOT_OBSERVABLE, 0, str(hidden))
    except PartError as failed:
        return Outcome(Verdict.ERROR, 0, str(failed))
    except _Overdue:
        return _overdue(context, limit, bad)
    except Exception:  # noqa: BLE001 - whatever a check raises otherwise is our own bug, and is reported as such
        return Outcome(Verdict.ERROR, 0, traceback.format_exc(limit=-4))
    if context.warnings:
        return Outcome(Verdict.WARN, 0, "; ".join(context.warnings), Kind.VIOLATES, late=True)
    return Outcome(Verdict.PASS, 0)


def _excuse_if_we_stood_still(outcome: Outcome, context: Context, began: float) -> None:
    """A harness that did not move for a while is to blame for whatever that might explain, in a check of any kind."""
    still = context.audit.lag_between(began, time.monotonic())
    if outcome.excusable and outcome.verdict in (Verdict.FAIL, Verdict.WARN) and still > _STOOD_STILL:
        outcome.verdict = Verdict.INCONCLUSIVE
        outcome.reason = f"we stood still for {still:.1f} s: {outcome.reason}"


def _excuse_if_overloaded(outcome: Outcome, context: Context, began: float) -> None:
    """On a machine that loses more than a second each second to its run queues, nothing late or missing is proven.

    Where state lapses, whatever was found may come of a lease that the machine kept the target from renewing, unless
    it is unsafe however slow everybody is.
    """
    lapsed = context.lapses and outcome.verdict in (Verdict.FAIL, Verdict.WARN)
    if not outcome.excusable or not (outcome.late or lapsed):
        return
    held, elapsed = context.held_back() - context.held_at_start, time.monotonic() - began
    if elapsed > _OVERLOAD_SEEN_AFTER and held > _OVERLOAD * elapsed:
        outcome.verdict = Verdict.INCONCLUSIVE
        outcome.reason = f"the machine was overloaded ({held:.1f} s lost in {elapsed:.1f} s): {outcome.reason}"


def _tell_deaths(outcome: Outcome, context: Context) -> None:
    """A node that has died by itself explains more than the silence that a check found."""
    for death in context.deployment.obituaries():
        context.transcript.note(death)
        outcome.reason = f"{outcome.reason} ({death})"


async def _run(context: Context, params: Mapping[str, Any]) -> None:
    provided: dict[str, Any] = {name: await context.get(kind) for name, kind in context.spec.provided().items()}
    await context.spec.function(**provided, **params)


async def _within(limit: float, context: Context, work: Coroutine[Any, Any, None]) -> None:
    """Ends the work at its deadline, to which is added what the machine held back: it is slow, the check is not."""
    task = asyncio.ensure_future(work)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # looked at, also when nobody waits
    began = time.monotonic()
    try:
        while not task.done():
            granted = min(_MOST_GRANTED * limit, context.held_back() - context.held_at_start)
            left = began + limit + granted - time.monotonic()
            if left <= 0:
                raise _Overdue
            await asyncio.wait({task}, timeout=left)
        task.result()
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=_CLEANUP_LIMIT)


def _overdue(context: Context, limit: float, bad: Verdict) -> Outcome:
    """A target that left calls unanswered is to blame; otherwise we are."""
    if context.unanswered:
        seen = f"{context.unanswered} calls without an answer when the check gave up after {limit:.0f} s"
        return Outcome(bad, 0, seen, Kind.ABSENT, ["answers"], seen, late=True)
    return Outcome(Verdict.ERROR, 0, f"the check did not end within its {limit:.0f} s", late=True)


async def _clean_up(context: Context) -> None:
    try:
        async with asyncio.timeout(_CLEANUP_LIMIT):
            await context.stack.aclose()
    except Exception as error:  # noqa: BLE001 - a target that fails while we tidy up says nothing about the check
        context.transcript.note(f"tidying up: {error!r}")
