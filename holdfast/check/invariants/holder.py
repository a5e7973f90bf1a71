"""At most one holder of a lock, a lease that expires or a slot; or at most `count` holders.

A grant (an acquire or a renewal that was answered with ok) took effect at some moment between request and answer. From
then on the client holds, until the moment of its next release or until the lease has expired. A release ends the hold
that it follows and no later one: a service that lets a belated release end a newer hold has two holders.

Where the history leaves something open, the rule takes what excuses the service. A grant of unknown outcome never
happened; a release of unknown outcome did, as early as it could. A grant that was answered after its own lease had
ended proves nothing, because no client relied on it; neither does one that its client released before the answer.

What is left of a hold is *sure*: from the answer of the grant to the earliest possible end, counted from the request.
The true hold is longer by an unknown amount at both ends, which `one_holder` has to place and `at_most` can leave out.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.check.history import History, Operation
from holdfast.check.invariants.result import (
    DEFAULT_LIMIT,
    Contradiction,
    Limit,
    Result,
    contradiction,
    judge,
)


@dataclass(slots=True, eq=False)
class Hold:
    """What one grant proves: the client held from the answer until `surely_until`.

    `starts` is where `_place` puts it, `pushed_by` the hold of another client that kept it from starting earlier.
    """

    grant: Operation
    release: Operation | None
    lease: float
    starts: float = 0.0
    pushed_by: "Hold | None" = None

    @property
    def client(self) -> str:
        return self.grant.client

    def ends(self, starts: float) -> float:
        """Returns the earliest end of a hold that began at `starts`."""
        return min(starts + self.lease, self.release.invoked if self.release else math.inf)

    @property
    def surely_from(self) -> float:
        return self.grant.completed

    @property
    def surely_until(self) -> float:
        return self.ends(self.grant.invoked)

    def operations(self) -> Iterator[Operation]:
        yield self.grant
        if self.release:
            yield self.release


def one_holder(
    history: History,
    *,
    acquire: str = "acquire",
    release: str = "release",
    renew: str = "renew",
    ttl: float | None = None,
    tolerance: float = 0.0,
    limit: Limit = DEFAULT_LIMIT,
) -> Result:
    """No two clients hold one key at the same time.

    With a `ttl`, each grant gives a lease of that length; `tolerance` is how much earlier the service may regard it as
    expired, because its clock is not ours. Each hold is sure at some moment, and in a legal run no two clients are sure
    at once, so those moments force the order of the holds. Placing the holds in this order, each as early as possible,
    finds a legal run if there is one. O(n log n).
    """
    lease = math.inf if ttl is None else ttl - tolerance

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        return _place(key, _holds(operations, (acquire, renew), release, lease))

    return judge("at most one holder", history, (acquire, release, renew), rule, limit)


def at_most(
    history: History,
    count: int,
    *,
    acquire: str = "acquire",
    release: str = "release",
    limit: Limit = DEFAULT_LIMIT,
) -> Result:
    """No more than `count` clients hold one key at the same time, from the answer of the grant to the release.

    All holds can have been as short as their sure parts at the same time, so counting those is exact. O(n log n).
    """

    def rule(key: str, operations: list[Operation]) -> Contradiction | None:
        return _crowd(key, _holds(operations, (acquire,), release, math.inf), count)

    return judge(f"at most {count} holders", history, (acquire, release), rule, limit)


def _holds(operations: Sequence[Operation], grants: Sequence[str], release: str, lease: float) -> list[Hold]:
    """Returns the holds that prove something, by the moment from which they are sure."""
    holds, next_release = [], dict[str, Operation]()
    for operation in reversed(operations):
        if operation.what == release and operation.possible:
            next_release[operation.client] = operation
        elif operation.what in grants and operation.ok:
            holds.append(Hold(operation, next_release.get(operation.client), lease))
    proven = [hold for hold in reversed(holds) if _proves(hold)]
    return sorted(proven, key=lambda hold: (hold.surely_from, hold.surely_until))


def _proves(hold: Hold) -> bool:
    """Whether it was answered while its lease ran and before its client asked for the release."""
    grant = hold.grant
    in_time = grant.invoked + hold.lease > grant.completed
    return in_time and (hold.release is None or hold.release.invoked >= grant.completed)


def _place(key: str, holds: list[Hold]) -> Contradiction | None:
    """Places the holds one after the other, each as early as possible; those of one client may overlap.

    Returns a contradiction at the first hold that would have to start after it was already sure.
    """
    current: Hold | None = None  # of the present client, the hold that ends last
    before: Hold | None = (
        None  # the same of the client before it; `floor`, its end, is where the present client may begin
    )
    ends, floor = -math.inf, -math.inf
    for hold in holds:
        if current and hold.client != current.client:
            before, floor, current, ends = current, ends, None, -math.inf
        hold.starts = max(hold.grant.invoked, floor)
        hold.pushed_by = before if floor > hold.grant.invoked else None
        if hold.starts > hold.surely_from:
            return _explain(key, hold)
        if current is None or hold.ends(hold.starts) >= ends:
            current, ends = hold, hold.ends(hold.starts)
    return None


def _explain(key: str, last: Hold) -> Contradiction:
    """Goes back from the hold without a place through those that pushed it, until they prove the contradiction."""
    chain, room = [last], last.surely_from
    while (previous := chain[-1].pushed_by) is not None:
        chain.append(previous)
        room -= previous.lease
        if previous.grant.invoked > room:
            break
    evidence = [operation for hold in chain for operation in _relevant(hold, last)]
    return contradiction(_words(key, chain), evidence)


def _relevant(hold: Hold, last: Hold) -> Iterator[Operation]:
    """Yields the grant, and the release if it and not the end of the lease decided how long the hold was sure."""
    yield hold.grant
    if hold is not last and hold.release and hold.release.invoked <= hold.starts + hold.lease:
        yield hold.release


def _words(key: str, chain: list[Hold]) -> str:
    last, previous = chain[0], chain[1]
    if len(chain) == 2:
        overlap = min(previous.surely_until, last.surely_until) - max(previous.surely_from, last.surely_from)
        duration = "" if math.isinf(overlap) else f" for at least {overlap:.3f} s"
        return f"{previous.client} and {last.client} both held {key or 'it'}{duration}"
    clients = ", ".join(hold.client for hold in reversed(chain))
    return f"{key or 'it'}: no order of these grants ({clients}) leaves each its whole lease of {last.lease:g} s"


def _crowd(key: str, holds: list[Hold], count: int) -> Contradiction | None:
    """Sweeps over the sure holds: `sure` counts those of each client at a moment, `ending` is a heap of their ends."""
    sure: Counter[str] = Counter()
    longest: dict[str, Hold] = {}
    ending: list[tuple[float, int, str]] = []
    for number, hold in enumerate(holds):
        while ending and ending[0][0] <= hold.surely_from:
            _forget(sure, heapq.heappop(ending)[2])
        sure[hold.client] += 1
        if sure[hold.client] == 1 or hold.surely_until >= longest[hold.client].surely_until:
            longest[hold.client] = hold
        if len(sure) > count:
            operations = [operation for client in sure for operation in longest[client].operations()]
            words = f"{len(sure)} clients held {key or 'it'} at the same time; at most {count} may"
            return contradiction(words, operations)
        heapq.heappush(ending, (hold.surely_until, number, hold.client))
    return None


def _forget(sure: Counter[str], client: str) -> None:
    sure[client] -= 1
    if not sure[client]:
        del sure[client]
