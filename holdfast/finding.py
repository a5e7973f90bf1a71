"""How a check says what it found: the exceptions that end it, and `expect`, which writes both sides down."""

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from holdfast.transcript import shortened
from holdfast.verdict import Kind

# A finding is read by people, who do not want a whole Redis snapshot.
LONGEST = 2000


class Finding(AssertionError):  # noqa: N818 - a verdict, not an error
    """The target does something else than the requirement demands."""

    kind = Kind.VIOLATES
    # Whether it may come of a machine that can't keep up.
    excusable = True

    def __init__(self, expected: Iterable[str], seen: str, why: str = "", *, late: bool = False) -> None:
        """`late`: something did not come, or not in time, which an overloaded machine could also have caused."""
        self.late = late
        self.expected = [shortened(text, LONGEST) for text in expected]
        self.seen = shortened(seen, LONGEST)
        self.why = why
        super().__init__(f"expected {' or '.join(self.expected)}; seen {self.seen}{f' ({why})' if why else ''}")


class Unsafe(Finding):
    """What no delay can explain: two leaders in one term, a slot given twice. An overloaded machine is no excuse."""

    excusable = False


class Absent(Finding):
    """The target shows no sign of the behaviour: no such endpoint, field or record."""

    kind = Kind.ABSENT


class Inconclusive(Exception):  # noqa: N818 - a verdict, not an error
    """Nothing can be said: too few samples, a fault that was not applied, a stalled machine or harness."""


class NotApplicable(Exception):  # noqa: N818 - a verdict, not an error
    """The requirement speaks of something that this target declares it does not have."""


class NotObservable(Exception):  # noqa: N818 - a verdict, not an error
    """The behaviour may be there, but this target gives us no way to look; `hook` would."""

    def __init__(self, hook: str) -> None:
        self.hook = hook
        super().__init__(f"not observable without {hook}")


class PartError(RuntimeError):
    """A part of ours has failed, neither the target nor the check; the text says which, and what it said last."""


@runtime_checkable
class Legal(Protocol):
    """One legal alternative of an expectation."""

    def matches(self, seen: Any) -> bool: ...

    def describe(self) -> str: ...


def expect(seen: Any, *legal: Any, why: str = "") -> None:
    """Hold what was seen against every legal alternative: values by equality, `Legal` objects by their own rule."""
    if not any(_matches(alternative, seen) for alternative in legal):
        late = bool(getattr(seen, "late", False))
        raise Finding([_describe(alternative) for alternative in legal], _describe(seen), why, late=late)


def _matches(alternative: Any, seen: Any) -> bool:
    if isinstance(alternative, Legal):
        return alternative.matches(seen)
    return bool(alternative == seen)


def _describe(value: Any) -> str:
    describe = getattr(value, "describe", None)
    return str(describe()) if callable(describe) else repr(value)
