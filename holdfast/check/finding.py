"""How a check ends: the exceptions that carry its verdict, and `expect`, which compares and writes down both sides."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from holdfast.check.decisive import judged
from holdfast.check.plain import plain
from holdfast.check.transcript import shortened
from holdfast.spec.verdict import Kind

# Characters of `expected` and `seen` that a finding shows; a whole Redis snapshot would hide what matters.
LONGEST = 2000


class Finding(AssertionError):  # noqa: N818 - a verdict, not an error
    """Raised where the target does something else than the requirement demands."""

    kind = Kind.VIOLATES
    # Whether an overloaded machine could have caused it; such a finding is turned into `inconclusive` there.
    excusable = True

    def __init__(self, expected: Iterable[str], seen: str, why: str = "", *, late: bool = False) -> None:
        """`expected` lists every legal alternative. `late` means that something did not come, or not in time."""
        self.late = late
        self.expected = [shortened(text, LONGEST) for text in expected]
        self.seen = shortened(seen, LONGEST)
        self.why = why
        super().__init__(f"expected {' or '.join(self.expected)}; seen {self.seen}{f' ({why})' if why else ''}")


class Unsafe(Finding):
    """Raised for what no delay can explain, such as two leaders in one term; an overloaded machine is no excuse."""

    excusable = False


class Absent(Finding):
    """Raised where the target shows no sign of the behaviour: no such endpoint, field or record."""

    kind = Kind.ABSENT


class Inconclusive(Exception):  # noqa: N818 - a verdict, not an error
    """Raised where nothing can be concluded: too few samples, a fault that was not applied, a stalled machine."""

    # What kept the check from judging, where other checks are kept from it by the same.
    blocks = ""


class ArrangementFailed(Inconclusive):
    """Raised where a step that only prepares the check failed; `owner` is the row that judges such a step."""

    def __init__(self, owner: str, cause: str) -> None:
        self.owner = owner
        self.blocks = f"{owner}, which the arrangement rests on"
        super().__init__(f"arrangement: {cause} (judged by {owner})")


class NotApplicable(Exception):  # noqa: N818 - a verdict, not an error
    """Raised where the requirement speaks of a feature that this target declares it does not have."""


class NotObservable(Exception):  # noqa: N818 - a verdict, not an error
    """Raised where the behaviour may be there but can't be seen; `hook` is what would show it.

    That is an entry of the descriptor, or a call that the target does not offer ("admin calls"). All that is
    blocked by one cause is told once, so the same cause has the same words; what else there is to say is `detail`.
    """

    def __init__(self, hook: str, detail: str = "") -> None:
        self.hook = hook
        self.blocks = f"no {hook}"
        super().__init__(f"not observable without {hook}{f' ({detail})' if detail else ''}")


class HarnessError(RuntimeError):
    """Raised where a part of the harness has failed, not the target; the text says which one, and its last words."""


class WronglyGiven(HarnessError):  # noqa: N818 - says what is wrong
    """Raised where what the descriptor gives us (a file, a credential) is missing or wrong; one sentence, and where."""


@runtime_checkable
class Legal(Protocol):
    """One legal alternative of an expectation."""

    def matches(self, seen: Any) -> bool: ...

    def describe(self) -> str: ...


def expect(seen: Any, *legal: Any, why: str = "") -> None:
    """Raises Finding unless `seen` matches an alternative: values by equality, `Legal` objects by their own rule."""
    judged()
    if not any(_matches(alternative, seen) for alternative in legal):
        late = bool(getattr(seen, "late", False))
        raise Finding([plain(alternative) for alternative in legal], plain(seen), why, late=late)


def demand(holds: object, expected: str, seen: str, why: str = "", *, unsafe: bool = False) -> None:
    """Raises Finding unless it holds, for conditions that `expect` has nothing to compare with; both sides in words.

    With `unsafe` it raises Unsafe, which nothing excuses.
    """
    judged()
    if not holds:
        raise (Unsafe if unsafe else Finding)([expected], seen, why)


def _matches(alternative: Any, seen: Any) -> bool:
    if isinstance(alternative, Legal):
        return alternative.matches(seen)
    return bool(alternative == seen)
