"""One attempt of one check on one deployment, and the verdict that comes of it.

The verdict is found in steps, each a function from what was judged so far to what is judged now:

1. The check's coroutine runs to its end, or to its deadline, to which is added what the machine held back. What it
   raises decides: `Finding` and other assertions blame the target, `Inconclusive` and its kin blame nobody, anything
   else is a bug in Holdfast. Findings after which the check went on (`Context.collect`) count with the last one; the
   worst is the headline, and nothing else that ends the check hides it. An end without a decisive exchange
   (`holdfast.check.decisive`) is no pass.
2. A blamed target is excused where we may be the cause: the harness did not move for a second, or the machine lost more
   time in run queues than went by. Findings that no delay can explain (`Unsafe`) are never excused.
3. A link or a proxy of the harness between the parts of the target that has failed turns what is not a pass into
   an error.
4. Nodes that ended without being told are named in the reason, because they explain more than the silence found.

Whatever happens, also when the attempt is cancelled, everything that the check opened is closed before the deployment
is given back. The outcome is put together once, at the end, and never changed.
"""

import asyncio
import itertools
import time
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.check.answer_timeout import AnswerTimeout
from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.evidence import Evidence
from holdfast.check.finding import (
    LONGEST,
    Finding,
    HarnessError,
    Inconclusive,
    NotApplicable,
    NotObservable,
)
from holdfast.check.transcript import shortened
from holdfast.run.job import Job
from holdfast.run.second_target import lending
from holdfast.spec.verdict import Kind, Verdict
from holdfast.target.deployment import Deployment

_CLEANUP_LIMIT = 5.0
# On a machine that holds everybody back a check may get this many times its limit on top.
_MOST_GRANTED = 2.0
# What we, the nodes and their Redis waited in run queues, added up, as a share of the time that went by.
_OVERLOAD, _OVERLOAD_SEEN_AFTER = 1.0, 1.0
# A harness that is stalled for this long sees nothing meanwhile and renews nothing that others rely on.
_STOOD_STILL = 1.0
# How many findings of one attempt are told beside the worst.
MOST_FURTHER = 9
_BLAMED = (Verdict.FAIL, Verdict.WARN)


class _Overdue(Exception):  # noqa: N818 - not an error yet
    """The check did not end in time."""


@dataclass(frozen=True)
class Surroundings:
    """What an attempt runs in: its deployment and how to get another, and what all checks of a run share."""

    deployment: Deployment
    lease: Callable[[], Awaitable[Deployment]]
    audit: Audit
    answer_timeout: AnswerTimeout
    say_waiting: Callable[[str, float], None]


@dataclass(frozen=True)
class Judged:
    """What a check came to. `late`: an overloaded machine could have caused it; `excusable`: any delay could have."""

    verdict: Verdict
    reason: str = ""
    kind: Kind | None = None
    expected: tuple[str, ...] = ()
    seen: str | None = None
    late: bool = False
    excusable: bool = True
    # The other findings of the check, a sentence each.
    further: tuple[str, ...] = ()
    # What kept the check from judging, in words that are the same for every check that it keeps from it.
    blocked_by: str = ""

    def excused(self, why: str) -> "Judged":
        return replace(self, verdict=Verdict.INCONCLUSIVE, reason=f"{why}: {self.reason}")


@dataclass(frozen=True)
class Outcome:
    """What is reported of one attempt."""

    verdict: Verdict
    attempt: int
    reason: str = ""
    kind: Kind | None = None
    expected: tuple[str, ...] = ()
    seen: str | None = None
    further: tuple[str, ...] = ()
    blocked_by: str = ""
    unsafe: bool = False
    started: float = 0.0
    duration: float = 0.0
    evidence: Evidence = field(default_factory=Evidence)
    decided: tuple[str, ...] | None = None

    @classmethod
    def error(cls, attempt: int, reason: str) -> "Outcome":
        return cls(Verdict.ERROR, attempt, reason)


def decided_rows(job: Job, outcome: Outcome) -> tuple[str, ...] | None:
    """Returns the rows that an outcome is about; None for all that the check claims.

    A walk that could not judge, for whatever reason, has decided none: each row has checks of its own.
    """
    if not job.spec.walks:
        return outcome.decided
    return outcome.decided or () if outcome.verdict in (Verdict.PASS, *_BLAMED) else ()


async def perform(job: Job, attempt: int, around: Surroundings, beside: Surroundings | None = None) -> Outcome:
    """`beside` is where the job's second target runs, if it has one."""
    context = _context(job, attempt, around)
    second = _context(job.on_the_other, attempt, beside) if beside else None
    started = time.monotonic()
    try:
        async with lending(context, second, job.params):
            judged = await _judge(context, job)
        judged = _excuse_if_we_stood_still(judged, context, started)
        judged = _excuse_if_a_stub_was_late(judged, context)
        judged = _excuse_if_overloaded(judged, context, started)
        judged = await _blame_ourselves(judged, context)
        judged = _name_deaths(judged, context)
    finally:
        # Shielded: a check that is cancelled, because its mutant is dead already, still closes what it opened.
        await asyncio.shield(_clean_up(context))
    redact = context.transcript.secrets.redact
    return Outcome(
        verdict=judged.verdict,
        attempt=attempt,
        reason=redact(judged.reason),
        kind=judged.kind,
        expected=tuple(redact(text) for text in judged.expected),
        seen=redact(judged.seen) if judged.seen is not None else None,
        further=tuple(redact(text) for text in judged.further),
        blocked_by=redact(judged.blocked_by),
        unsafe=not judged.excusable,
        started=started,
        duration=time.monotonic() - started,
        evidence=context.evidence(transcribed=job.transcribed or judged.verdict is not Verdict.PASS),
        decided=context.decided,
    )


def _context(job: Job, attempt: int, around: Surroundings) -> Context:
    return Context(
        spec=job.spec,
        target=job.target,
        catalogue=job.catalogue,
        timings=job.timings,
        deployment=around.deployment,
        audit=around.audit,
        seed=job.seed + attempt - 1,
        say_waiting=around.say_waiting,
        lease=around.lease,
        answer_timeout=around.answer_timeout,
        walk_order=job.walk_order,
    )


async def _judge(context: Context, job: Job) -> Judged:
    ended = await _ended(context, job)
    if rows := [context.row_of.get(id(finding)) for finding in context.found]:
        context.decided = tuple(dict.fromkeys(row for row in rows if row)) if all(rows) else context.decided
    bad = _how_bad(job, context)
    found = sorted((_blaming(finding, bad) for finding in context.found), key=_worst_first)
    if not found:
        return ended
    texts = tuple(each.reason for each in found)
    if ended.verdict is Verdict.ERROR:  # nothing about this attempt can be trusted, but what it said is not lost
        return replace(ended, further=texts)
    rest = () if ended.verdict is Verdict.PASS else (ended.reason,)
    more = (f"… and {len(texts) - 1 - MOST_FURTHER} more",) if len(texts) - 1 > MOST_FURTHER else ()
    return replace(found[0], further=(*texts[1 : MOST_FURTHER + 1], *more, *rest))


def _blaming(finding: AssertionError, bad: Verdict) -> Judged:
    if isinstance(finding, Finding):
        expected = tuple(finding.expected)
        return Judged(bad, str(finding), finding.kind, expected, finding.seen, finding.late, finding.excusable)
    said = shortened(_sentence(finding), LONGEST)
    return Judged(bad, said or "an assertion without a sentence did not hold", Kind.VIOLATES, (), said or None)


def _sentence(finding: AssertionError) -> str:
    """The check's own words: pytest, where it is run directly, adds the expression and the objects in it below them."""
    lines = [line.strip() for line in str(finding).splitlines()]
    own = itertools.takewhile(lambda line: not line.startswith("assert "), lines)
    return "; ".join(line for line in own if line)


def _worst_first(judged: Judged) -> tuple[bool, int]:
    """What no delay excuses comes first, then what the target does wrong, then what it does not do at all."""
    return judged.excusable, list(Kind).index(judged.kind or Kind.VIOLATES)


async def _ended(context: Context, job: Job) -> Judged:  # noqa: PLR0911 - one line a verdict
    """How the check itself ended; a finding that ends it joins those that were collected."""
    try:
        await _within(job.deadline, context, _run(context, job.params))
    except AssertionError as finding:
        context.found.append(finding)
        return Judged(Verdict.PASS)
    except Inconclusive as undecided:
        return Judged(Verdict.INCONCLUSIVE, str(undecided), blocked_by=undecided.blocks)
    except NotApplicable as unfit:
        return Judged(Verdict.NOT_APPLICABLE, str(unfit))
    except NotObservable as hidden:
        return _hidden(hidden, job)
    except HarnessError as failed:
        return Judged(Verdict.ERROR, str(failed))
    except _Overdue:
        return _overdue(context, job.deadline, _how_bad(job, context))
    except Exception:  # noqa: BLE001 - whatever a check raises otherwise is our own bug, and is reported as such
        return Judged(Verdict.ERROR, traceback.format_exc(limit=-4))
    if context.warnings:
        return Judged(Verdict.WARN, "; ".join(context.warnings), Kind.VIOLATES, late=True)
    if not context.found and not context.acts.decisive:
        return Judged(Verdict.INCONCLUSIVE, f"no decisive act: {context.acts.describe()}")
    return Judged(Verdict.PASS)


def _hidden(hidden: NotObservable, job: Job) -> Judged:
    """What the descriptor says the target does not offer is no gap in our sight."""
    if reason := job.target.not_offered.of_cause(hidden.hook):
        return Judged(Verdict.NOT_APPLICABLE, reason)
    return Judged(Verdict.NOT_OBSERVABLE, str(hidden), blocked_by=hidden.blocks)


def _how_bad(job: Job, context: Context) -> Verdict:
    """Of the rows that a finding is about, one MUST is enough."""
    rows = context.decided or tuple(claim.id for claim in job.spec.claims)
    return Verdict.FAIL if any(job.catalogue.requirements[row].level == "MUST" for row in rows) else Verdict.WARN


def _overdue(context: Context, limit: float, bad: Verdict) -> Judged:
    """A target that left calls unanswered is to blame; otherwise we are."""
    if context.unanswered:
        calls = "1 call" if context.unanswered == 1 else f"{context.unanswered} calls"
        seen = f"{calls} without an answer when the check gave up after {limit:.0f} s"
        return Judged(bad, seen, Kind.ABSENT, ("answers",), seen, late=True)
    return Judged(Verdict.ERROR, f"the check did not end within its {limit:.0f} s", late=True)


def _excuse_if_we_stood_still(judged: Judged, context: Context, began: float) -> Judged:
    """A harness that did not move for a while is to blame for whatever that might explain, in a check of any kind."""
    still = context.audit.lag_between(began, time.monotonic())
    if judged.excusable and judged.verdict in _BLAMED and still > _STOOD_STILL:
        return judged.excused(f"we stood still for {still:.1f} s")
    return judged


def _excuse_if_a_stub_was_late(judged: Judged, context: Context) -> Judged:
    """A node that gave up a peer which we play did so because of us, and whatever it did next may come of that."""
    if judged.excusable and judged.verdict in _BLAMED and context.late_stub:
        return judged.excused(context.late_stub)
    return judged


def _excuse_if_overloaded(judged: Judged, context: Context, began: float) -> Judged:
    """On a machine that loses more than a second each second to its run queues, nothing late or missing is proven.

    Where state lapses, whatever was found may come of a lease that the machine kept the target from renewing.
    """
    lapsed = context.lapses and judged.verdict in _BLAMED
    if not judged.excusable or not (judged.late or lapsed):
        return judged
    held, elapsed = context.held_back() - context.held_at_start, time.monotonic() - began
    if elapsed > _OVERLOAD_SEEN_AFTER and held > _OVERLOAD * elapsed:
        return judged.excused(f"the machine was overloaded ({held:.1f} s lost in {elapsed:.1f} s)")
    return judged


async def _blame_ourselves(judged: Judged, context: Context) -> Judged:
    """A link or proxy process that failed by itself makes whatever was found our error, unless nothing excuses it."""
    if judged.verdict in (Verdict.PASS, Verdict.ERROR) or not judged.excusable:
        return judged
    trouble = await context.deployment.trouble()
    return Judged(Verdict.ERROR, trouble) if trouble else judged


def _name_deaths(judged: Judged, context: Context) -> Judged:
    """A node that has ended by itself explains more than the silence that a check found."""
    if judged.verdict is Verdict.PASS:
        return judged
    for death in context.deployment.obituaries():
        context.transcript.note(death)
        judged = replace(judged, reason=f"{judged.reason} ({death})")
    return judged


async def _run(context: Context, params: Mapping[str, Any]) -> None:
    context.acts.begin()
    await context.perform_check(params)


async def _within(limit: float, context: Context, work: Coroutine[Any, Any, None]) -> None:
    """End the work at its deadline, to which is added what the machine held back: it is slow, the check is not."""
    task = asyncio.ensure_future(work)
    # Looked at here, because nobody may wait for it any more when it fails.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
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


async def _clean_up(context: Context) -> None:
    try:
        async with asyncio.timeout(_CLEANUP_LIMIT):
            await context.stack.aclose()
    except Exception as error:  # noqa: BLE001 - a target that fails while we tidy up says nothing about the check
        context.transcript.note(f"tidying up: {error!r}")
