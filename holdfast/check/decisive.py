"""Sees whether a check came to its decisive act: a judgement beyond its arrangement.

A check that ends without one has concluded nothing, whatever its name says: a loop over an empty list, an early return,
a call whose answer nobody compared. Its end is no pass (`holdfast.run.perform` makes it inconclusive). So every
judgement is counted here: `expect`, `demand`, judged timings, `until`, invariants. Exchanges with the target are
counted too, to say how far a check came. What happens while the check is arranging does not count.

`expect` is a plain function and is handed no context, so the counts of the running attempt are found in a context
variable. They are one object for all tasks of the attempt: a stub that was opened while arranging counts the calls that
come later.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

_CURRENT: ContextVar["Acts | None"] = ContextVar("holdfast_acts", default=None)


@dataclass
class Acts:
    """What one attempt did outside its arrangement; `arranged` counts the exchanges inside."""

    exchanges: int = 0
    judgements: int = 0
    arranged: int = 0
    depth: int = 0

    def begin(self) -> None:
        """Makes these the counts of the running task and of every task that it starts."""
        _CURRENT.set(self)

    @contextmanager
    def arranging(self) -> Iterator[None]:
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def exchanged(self) -> None:
        if self.depth:
            self.arranged += 1
        else:
            self.exchanges += 1

    def judged(self) -> None:
        self.judgements += not self.depth

    @property
    def decisive(self) -> bool:
        return self.judgements > 0

    def describe(self) -> str:
        """Says what is missing, for an attempt that is not decisive."""
        if self.exchanges:
            return f"nothing was judged after {self.exchanges} line(s) of exchange with the target"
        if self.arranged:
            return f"{self.arranged} exchanges prepared the check, and then it neither asked nor judged anything"
        return "the check neither asked the target nor judged anything"


def judged() -> None:
    """Counts a judgement of the running check; outside a check it does nothing."""
    if acts := _CURRENT.get():
        acts.judged()
