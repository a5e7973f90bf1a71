"""Judges what became of many attempts at once.

A busy target may answer that it ran out of time, and then it has decided nothing: AD-TIME-01 to -03 judge that. So such
answers, and connections that ended without one, may explain too few of an outcome, and never too many.
"""

from collections.abc import Mapping, Sequence

from holdfast.check.finding import Inconclusive, demand
from holdfast.conformance.admission.client import outcomes, tally
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import Answer

REFUSALS = frozenset({"ALREADY_IN_SESSION", "RATE_LIMITED"})


def settled(answers: Sequence[Answer]) -> list[Answer]:
    """Returns the answers that decide something. Raises Inconclusive if these are only a few."""
    decided = _decided(answers)
    if len(decided) < len(answers) / 2:
        raise _too_late(answers, decided)
    return decided


def exactly(answers: Sequence[Answer], legal: Mapping[str, int], why: str = "") -> None:
    """Raises Finding unless there are exactly as many of each outcome, and Unsafe if more got in or into line."""
    decided, wanted = _decided(answers), {name: count for name, count in legal.items() if count}
    counts, seen = outcomes(decided), tally(outcomes(answers))
    too_many = any(counts.get(name, 0) > wanted.get(name, 0) for name in ("success", "queued"))
    demand(not too_many, tally(wanted), seen, why, unsafe=True)
    if len(decided) < len(answers) and all(count <= wanted.get(name, 0) for name, count in counts.items()):
        raise _too_late(answers, decided)
    demand(counts == wanted, tally(wanted), seen, why)


def one_success(answers: Sequence[Answer], why: str, refusals: frozenset[str] | None = REFUSALS) -> Answer:
    """Returns the one success. Raises Finding unless there is exactly one, and Unsafe if there are more.

    All others that were decided are refusals, with one of these codes; None stands for any.
    """
    decided, seen = _decided(answers), tally(outcomes(answers))
    winners = [answer for answer in decided if answer.outcome == "success"]
    demand(len(winners) <= 1, "one success", seen, why, unsafe=True)
    refused = [each for each in decided if each.outcome == "failed" and (refusals is None or each.reason in refusals)]
    none_of(
        outcomes([each for each in decided if each not in (*winners, *refused)]), "other answer than a refusal", why
    )
    if not winners and len(decided) < len(answers):
        raise _too_late(answers, decided)
    demand(winners, "one success", seen, why)
    return winners[0]


def _decided(answers: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in answers if not answer.late]


def _too_late(answers: Sequence[Answer], decided: Sequence[Answer]) -> Inconclusive:
    late = len(answers) - len(decided)
    return Inconclusive(f"{late} of {len(answers)} attempts at once ended as timeout, or without an answer")
