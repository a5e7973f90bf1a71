"""What a scenario saw of its sessions, as a history that the invariants judge whatever the faults were.

A `Life` is all that calls of the check and polls of the watch have told of one session. It runs, for certain, from the
answer that first shows it running until the last poll that shows it so was sent, and its key is its own from the answer
that names it as long. Three things end that sooner, because the session may be over while its record is not yet: a stop
that was asked for, the death of its worker, and `grace`, the time that a worker may take to notice that it has lost its
leases. So a history proves too little rather than too much.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.check.history import History, Operation, Outcome
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.keys import Lease
from holdfast.conformance.intents.wire import Answer

RUN, END, GIVEN, OVER = "run", "end", "given", "over"


@dataclass
class Life:
    """One session: when answers named it, when polls showed it, and when it was over."""

    id: str
    channel: str
    profile: str
    named: list[Moment] = field(default_factory=list)
    ready: Moment | None = None
    last_ready: float = -math.inf
    last_live: float = -math.inf
    ended: float = math.inf
    # From then on it may be over whatever polls show: a stop was sent, or its worker was killed.
    cut_off: float = math.inf

    def polled(self, answer: Answer, *, runs: bool) -> None:
        if answer.terminal:
            self.ended = min(self.ended, answer.received)
            return
        self.last_live = max(self.last_live, answer.sent)
        if runs:
            self.ready = self.ready or Moment(answer.sent, answer.received)
            self.last_ready = max(self.last_ready, answer.sent)

    def running(self, grace: float, key: str) -> Iterator[Operation]:
        """Yields the two operations between which it surely ran, under this key; none if that is not known."""
        until = min(self.last_ready - grace, self.cut_off)
        if self.ready and self.named and self.ready.hi <= until:
            yield _operation(self.id, RUN, key, self.named[0].lo, self.ready.hi)
            yield _ending(self.id, END, key, until)

    def known(self, grace: float) -> Iterator[Operation]:
        """Yields an operation for each answer that surely named it while it lived, and one for the end of that time."""
        key, until = f"{self.channel} {self.profile}", min(self.last_live - grace, self.cut_off)
        for moment in self.named:
            if moment.hi <= until:
                yield _operation(self.id, GIVEN, key, moment.lo, moment.hi)
        yield _ending(self.id, OVER, key, until)


def _operation(client: str, what: str, key: str, invoked: float, completed: float) -> Operation:
    return Operation(client, what, key, None, Outcome.OK, None, invoked, completed)


def _ending(client: str, what: str, key: str, earliest: float) -> Operation:
    """The end of a hold, which came at this moment or at any later one."""
    return Operation(client, what, key, None, Outcome.UNKNOWN, None, earliest, math.inf)


@dataclass
class Lives:
    """All sessions of a scenario, and the leases that were seen meanwhile."""

    grace: float = 0.0
    of: dict[str, Life] = field(default_factory=dict)
    leases: list[tuple[str, Lease]] = field(default_factory=list)

    def of_channels(self) -> History:
        """At most one of each key runs at a time."""
        return History.of(each for life in self.of.values() for each in life.running(self.grace, life.channel))

    def of_slots(self) -> History:
        """At most as many as there are slots run at a time."""
        return History.of(each for life in self.of.values() for each in life.running(self.grace, "tuner slots"))

    def of_keys(self) -> History:
        """At most one session lives under each idempotency key."""
        return History.of(each for life in self.of.values() for each in life.known(self.grace))

    def left_over(self, longest: float) -> Iterator[str]:
        """Yields each lease that was there longer than this after its owner had ended, in words."""
        for key, lease in self.leases:
            life = self.of.get(lease.owner)
            if life and lease.moment.lo > life.ended + longest:
                yield f"{key} of {lease.owner}, {lease.moment.lo - life.ended:.1f} s after its end"
