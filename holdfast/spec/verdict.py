"""The ten verdicts, how they fold, and what they mean for the exit code.

A check ends in one verdict. The checks of one part fold into the part's verdict, the parts into the row's. Folding
takes the worst in the order of the enum, so that nothing skipped reads as green: a row passes only if everything that
was planned for it passed. The order says what a reader must see first. `error` is worst because it means that the suite
itself failed, and then nothing else about the row can be trusted; `fixed` (a listed failure that now passes) is red
until the list is corrected; `inconclusive` hides behind `warn` and `known` but still stops the run from being green.

The exit code answers one question each: 1, did anything fail; 2, could anything not be judged; 0, neither. A row of the
profile that could not be observed was not judged; where the target does without it, its descriptor says so
(`[not_offered]`), and the row is `not-applicable`.
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
    """The two kinds of `fail`: the target does something else, or shows no sign of the behaviour."""

    VIOLATES = "violates"
    ABSENT = "absent"


WORST_FIRST: tuple[Verdict, ...] = tuple(Verdict)

UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.ERROR, Verdict.NOT_OBSERVABLE})
_BLIND = frozenset({Verdict.NOT_OBSERVABLE, Verdict.NOT_APPLICABLE})
_RED = frozenset({Verdict.FAIL, Verdict.FIXED})


def fold(verdicts: Iterable[Verdict]) -> Verdict:
    """Returns the worst of them; `error` for none at all, because zero checks must never read as green.

    `partial` where some passed and the others are about what the target does without.
    """
    seen = set(verdicts)
    if seen == {Verdict.PASS, Verdict.NOT_APPLICABLE}:
        return Verdict.PARTIAL
    return min(seen, key=WORST_FIRST.index, default=Verdict.ERROR)


def fold_parts(main: Verdict, extras: Iterable[Verdict]) -> Verdict:
    """Returns a row's verdict from those of its parts.

    `partial` if the main part passed and an extra part could not be observed, or is not offered: most of the row was
    judged.
    """
    extra = list(extras)
    if main is Verdict.PASS and (blind := [v for v in extra if v in _BLIND]):
        return fold([Verdict.PARTIAL, *(v for v in extra if v not in blind)])
    return fold([main, *extra])


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """Returns 0 if every row was decided and none failed, 1 if something failed, 2 if something could not be judged."""
    seen = set(verdicts)
    if seen & _RED:
        return 1
    if not seen or seen & UNDECIDED:
        return 2
    return 0
