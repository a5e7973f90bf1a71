"""The ten verdicts, how they fold, and what they mean for the exit code.

A check ends in one verdict. The checks of one part fold into the part's verdict, the parts into the row's. Folding
takes the worst in a fixed order, so that nothing skipped reads as green.
"""

from collections.abc import Iterable
from enum import StrEnum


class Verdict(StrEnum):
    ERROR = "error"
    FAIL = "fail"
    FIXED = "fixed"
    WARN = "warn"
    KNOWN = "known"
    INCONCLUSIVE = "inconclusive"
    PARTIAL = "partial"
    NOT_OBSERVABLE = "not-observable"
    NOT_APPLICABLE = "not-applicable"
    PASS = "pass"  # noqa: S105 - a verdict, not a password


class Kind(StrEnum):
    """What a `fail` says about the target: it does something else, or shows no sign of the behaviour."""

    VIOLATES = "violates"
    ABSENT = "absent"


WORST_FIRST: tuple[Verdict, ...] = tuple(Verdict)

_UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.ERROR})
_RED = frozenset({Verdict.FAIL, Verdict.FIXED})


def fold(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; none at all is an error, because zero checks must never read as green."""
    return min(verdicts, key=WORST_FIRST.index, default=Verdict.ERROR)


def fold_parts(main: Verdict, extras: Iterable[Verdict]) -> Verdict:
    """A row's verdict from its parts.

    A main part that held with an extra part out of sight is `partial`: most of the row was judged.
    """
    extra = list(extras)
    if main is Verdict.PASS and (blind := [v for v in extra if v is Verdict.NOT_OBSERVABLE]):
        return fold([Verdict.PARTIAL, *(v for v in extra if v not in blind)])
    return fold([main, *extra])


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """0: every row decided, none failed; 1: something failed; 2: could not judge."""
    seen = set(verdicts)
    if seen & _RED:
        return 1
    if not seen or seen & _UNDECIDED:
        return 2
    return 0
