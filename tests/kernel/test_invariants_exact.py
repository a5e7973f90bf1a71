"""The invariants against brute force on small histories, in both directions.

The brute force uses no shortcut: it tries every choice for the unknown outcomes, every order that the intervals allow,
and where leases run out, every moment; a history holds if one of them is what a correct service could have done. All
times are small whole numbers, so that touching and equal stamps come up often.
"""

import contextlib
import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from holdfast.check import invariants
from holdfast.check.history import History, HistoryError, Operation, Outcome
from holdfast.check.invariants import Judged, Result

thorough = settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])

OUTCOMES = st.sampled_from([Outcome.OK] * 4 + [Outcome.UNKNOWN] * 2 + [Outcome.FAILED])


@dataclass(frozen=True)
class Deed:
    what: str
    outcome: Outcome
    pause: int
    takes: int


def lives(*names: str, clients: int = 3, most: int = 2) -> st.SearchStrategy[list[list[Deed]]]:
    """What each client does, one operation after the other; after an unknown outcome it does the next one."""
    deeds = st.builds(Deed, st.sampled_from(names), OUTCOMES, st.integers(0, 3), st.integers(0, 3))
    return st.lists(st.lists(deeds, max_size=most), min_size=1, max_size=clients)


def carried_out(clients: Sequence[Sequence[Deed]]) -> History:
    made = []
    for number, life in enumerate(clients):
        now = 0
        for deed in life:
            invoked, now = now + deed.pause, now + deed.pause + deed.takes
            completed = math.inf if deed.outcome is Outcome.UNKNOWN else float(now)
            made.append(Operation(f"c{number}", deed.what, "", None, deed.outcome, None, float(invoked), completed))
    return History(tuple(operation._replace(value=at) for at, operation in enumerate(History.of(made))))


def place(operation: Operation) -> int:
    """Its place in the history: operations of one client with equal stamps still follow each other."""
    return int(str(operation.value))


Check = Callable[[History], Result]
Step = Callable[[Hashable, Operation], tuple[Hashable] | None]


def agree(check: Check, history: History, possible: bool) -> None:
    """Asserts that the rule and the brute force agree, and that the evidence alone contradicts the rule too."""
    result = check(history)
    event(f"{result.judged}")
    assert result.judged is (Judged.HOLDS if possible else Judged.VIOLATED), result.describe()
    if result.judged is Judged.VIOLATED:
        assert result.words
        assert set(result.evidence) <= set(history)
        with contextlib.suppress(HistoryError):  # the evidence may lack the first operation, which the rule insists on
            assert check(History.of(result.evidence)).judged is Judged.VIOLATED, result.describe()


def choices(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Every set of operations that may have had an effect: all known ones, and any of the unknown ones."""
    if not operations:
        yield []
        return
    for rest in choices(operations[1:]):
        if not operations[0].ok:
            yield rest
        if operations[0].possible:
            yield [operations[0], *rest]


def orders(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    if not operations:
        yield []
    for first in operations:
        if not any(other.before(first) for other in operations):
            rest = [other for other in operations if other is not first]
            yield from ([first, *order] for order in orders(rest))


def explained(history: History, fits: Callable[[Sequence[Operation]], bool]) -> bool:
    return any(fits(order) for chosen in choices(history.operations) for order in orders(chosen))


def held_in_turn(order: Sequence[Operation]) -> bool:
    holder: Operation | None = None
    for operation in order:
        if operation.what == "acquire":
            if holder and holder.client != operation.client:
                return False
            holder = max(holder or operation, operation, key=place)  # a belated one changes nothing
        elif holder and holder.client == operation.client and place(holder) < place(operation):
            holder = None  # a release ends the hold that it follows, not a later one
    return True


@given(lives("acquire", "release"))
@thorough
def test_one_holder_without_a_lease_is_exact(clients: list[list[Deed]]) -> None:
    history = carried_out(clients)
    if "acquire" not in history.names:
        return
    possible = explained(history, held_in_turn)
    agree(invariants.one_holder, history, possible)
    agree(partial(invariants.at_most, count=1), history, possible)


def moments(operation: Operation) -> range:
    """The moments at which an operation may have happened; an unknown one may come after all others."""
    last = 30 if math.isinf(operation.completed) else int(operation.completed)
    return range(int(operation.invoked), last + 1)


@dataclass(frozen=True)
class Held:
    client: str
    start: float
    end: float

    def apart(self, other: "Held") -> bool:
        return self.client == other.client or self.end <= other.start or other.end <= self.start


def placements(grant: Operation, release: Operation | None, lease: float) -> Iterator[list[Held]]:
    """Every choice of moments for this grant and its release; one of unknown outcome may also not have happened."""
    if grant.outcome is Outcome.UNKNOWN:
        yield []
    for start in moments(grant):
        if release is None or release.outcome is Outcome.UNKNOWN:
            yield [Held(grant.client, start, start + lease)]
        for end in moments(release) if release else ():
            if end >= start:
                yield [Held(grant.client, start, min(end, start + lease))]


def placeable(grants: Sequence[tuple[Operation, Operation | None]], lease: float, placed: list[Held]) -> bool:
    if not grants:
        return True
    return any(
        all(held.apart(other) for other in placed for held in new) and placeable(grants[1:], lease, [*placed, *new])
        for new in placements(*grants[0], lease)
    )


def leases(history: History, lease: float) -> list[tuple[Operation, Operation | None]]:
    """Each grant with the release that ends it; a grant that was answered after its lease proves nothing."""
    found = []
    for grant in history:
        if grant.what == "release" or not grant.possible or grant.invoked + lease <= grant.completed < math.inf:
            continue
        ends = [r for r in history if r.what == "release" and r.possible and r.client == grant.client]
        found.append((grant, next((release for release in ends if place(release) > place(grant)), None)))
    return found


@given(lives("acquire", "acquire", "renew", "release"), st.integers(1, 6), st.integers(0, 2))
@thorough
def test_one_holder_of_a_lease_is_exact(clients: list[list[Deed]], lease: int, tolerance: int) -> None:
    history = carried_out(clients)
    if "acquire" not in history.names:
        return
    grants = [pair for pair in leases(history, lease) if not released_too_soon(*pair)]
    check = partial(invariants.one_holder, ttl=lease + tolerance, tolerance=tolerance)
    agree(check, history, placeable(grants, lease, []))


def released_too_soon(grant: Operation, release: Operation | None) -> bool:
    return grant.ok and release is not None and release.invoked < grant.completed


@given(lives("acquire", "release", clients=4, most=2), st.integers(1, 3))
@thorough
def test_at_most_n_holders_is_exact(clients: list[list[Deed]], count: int) -> None:
    def room(order: Sequence[Operation]) -> bool:
        holding: dict[str, int] = {}
        for operation in order:
            if operation.what == "acquire":
                holding[operation.client] = max(place(operation), holding.get(operation.client, -1))
            elif holding.get(operation.client, math.inf) < place(operation):
                del holding[operation.client]
            if len(holding) > count:
                return False
        return True

    history = carried_out(clients)
    if "acquire" in history.names:
        agree(partial(invariants.at_most, count=count), history, explained(history, room))


@lru_cache(maxsize=10_000)
def stepwise(operations: tuple[Operation, ...], state: Hashable, step: Step) -> bool:
    """The same with backtracking, where there are too many orders to list: stops where the object refuses a step."""
    if not any(operation.ok for operation in operations):
        return True  # the rest need not have happened
    for first in operations:
        if first.possible and not any(other.before(first) for other in operations if other.possible):
            after = step(state, first)
            if after and stepwise(tuple(other for other in operations if other is not first), after[0], step):
                return True
    return False


def as_lock(holder: Hashable, operation: Operation) -> tuple[Hashable] | None:
    if operation.what == "acquire":
        return (operation.client,) if holder in (None, operation.client) else None
    return (None if holder == operation.client else holder,)


@given(lives("acquire", "release"))
@thorough
def test_a_linearizable_lock_is_exact(clients: list[list[Deed]]) -> None:
    history = carried_out(clients)
    if "acquire" in history.names:
        result = invariants.linearizable(history, invariants.Lock())
        assert (result.judged is Judged.HOLDS) == stepwise(history.operations, None, as_lock)


def as_register(value: Hashable, operation: Operation) -> tuple[Hashable] | None:
    if operation.what == "write":
        return (operation.argument,)
    return (value,) if operation.value == value or not operation.ok else None


@given(lives("write", "read"), st.lists(st.integers(0, 5), min_size=6, max_size=6))
@thorough
def test_an_atomic_register_is_exact(clients: list[list[Deed]], figures: list[int]) -> None:
    """Writes of different values, and reads of any of these or of the start."""
    made = carried_out(clients)
    written = [0, *range(1, 1 + sum(operation.what == "write" for operation in made))]
    values = iter(written[1:])
    history = History.of(
        operation._replace(argument=next(values))
        if operation.what == "write"
        else operation._replace(value=written[figure % len(written)])
        for operation, figure in zip(made, figures, strict=False)
    )
    if "write" in history.names:
        agree(partial(invariants.atomic_register, start=0), history, stepwise(history.operations, 0, as_register))


@given(lives("write", "read"), st.lists(st.integers(0, 2), min_size=9, max_size=9))
@thorough
def test_a_linearizable_register_is_exact(clients: list[list[Deed]], figures: list[int]) -> None:
    history = History.of(
        operation._replace(argument=figure) if operation.what == "write" else operation._replace(value=figure)
        for operation, figure in zip(carried_out(clients), figures, strict=False)
    )
    if "write" in history.names:
        possible = stepwise(history.operations, 0, as_register)
        for ask in (
            partial(invariants.linearizable, model=invariants.Register(0)),
            partial(invariants.atomic_register, start=0),
        ):
            assert (ask(history).judged is Judged.HOLDS) == possible


@given(lives("acquire"), st.lists(st.integers(0, 4), min_size=9, max_size=9), st.booleans())
@thorough
def test_monotonic_tokens_is_exact(clients: list[list[Deed]], figures: list[int], repeats: bool) -> None:
    history = History.of(
        operation._replace(value=figure) for operation, figure in zip(carried_out(clients), figures, strict=False)
    )
    if not history:
        return
    known = [operation for operation in history if operation.ok]

    def rising(order: Sequence[Operation]) -> bool:
        tokens = [float(str(operation.value)) for operation in order]
        return all(a < b or (repeats and a == b) for a, b in pairwise(tokens))

    check = partial(invariants.monotonic_tokens, repeats=repeats)
    agree(check, history, any(rising(order) for order in orders(known)))


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2), OUTCOMES), min_size=1, max_size=6))
@thorough
def test_one_leader_per_term_is_exact(seen: list[tuple[str, int, Outcome]]) -> None:
    history = History.of(
        Operation("watcher", "lead", "", node, outcome, term, float(at), math.inf if outcome is Outcome.UNKNOWN else at)
        for at, (node, term, outcome) in enumerate(seen)
    )
    leaders = {(term, node) for node, term, outcome in seen if outcome is Outcome.OK}
    agree(invariants.one_leader_per_term, history, len(leaders) == len({term for term, _ in leaders}))


def as_queue(waiting: Hashable, operation: Operation) -> tuple[Hashable] | None:
    assert isinstance(waiting, tuple)
    item = operation.subject
    if operation.what == "enqueue":
        return ((*waiting, item),)
    if operation.what == "leave":
        return (tuple(other for other in waiting if other != item),)
    return (waiting[1:],) if waiting and item in (None, waiting[0]) else None


@st.composite
def queues(draw: st.DrawFn) -> History:
    """Items that arrive and are then served or leave, with any outcome; services may name no item."""
    operations = []
    for item in "wxyz"[: draw(st.integers(2, 4))]:
        arrival = _timed(draw, "enqueue", item, draw(st.integers(0, 4)))
        operations.append(arrival)
        end = draw(st.sampled_from(["serve", "serve", "serve", "leave", "nothing"]))
        if end != "nothing" and arrival.possible:
            operations.append(_timed(draw, end, item, draw(st.integers(0, 6))))
        if draw(st.integers(0, 4)) == 0:
            operations.append(_silent("leave", item, draw(st.integers(0, 6))))
    operations += [_silent("serve", None, draw(st.integers(0, 6))) for _ in range(draw(st.integers(0, 2)))]
    return History.of(operations)


def _silent(what: str, item: str | None, at: int) -> Operation:
    return Operation("somebody", what, "", item, Outcome.UNKNOWN, "timeout", float(at), math.inf)


def _timed(draw: st.DrawFn, what: str, item: str, at: int) -> Operation:
    outcome = draw(OUTCOMES)
    completed = math.inf if outcome is Outcome.UNKNOWN else at + draw(st.integers(0, 3))
    return Operation(f"c-{item}", what, "", item, outcome, None, float(at), float(completed))


@given(queues())
@thorough
def test_fifo_is_exact(history: History) -> None:
    agree(invariants.fifo, history, stepwise(history.operations, (), as_queue))


@st.composite
def errands(draw: st.DrawFn) -> History:
    operations = []
    for _ in range(draw(st.integers(1, 6))):
        what = draw(st.sampled_from(["submit", "effect"]))
        operation = _timed(draw, what, draw(st.sampled_from("xy")), draw(st.integers(0, 6)))
        anonymous = what == "effect" and operation.outcome is Outcome.UNKNOWN and draw(st.booleans())
        operations.append(operation._replace(argument=None) if anonymous else operation)
    return History.of(operations)


def named(operations: Sequence[Operation]) -> Iterator[list[Operation]]:
    """Every choice of items for the operations that name none."""
    if not operations:
        yield []
        return
    for rest in named(operations[1:]):
        for item in [operations[0].argument] if operations[0].argument is not None else "xy":
            yield [operations[0]._replace(argument=item), *rest]


@given(errands())
@thorough
def test_exactly_once_is_exact(history: History) -> None:
    def once(order: Sequence[Operation]) -> bool:
        submitted: set[object] = set()
        effected: Counter[object] = Counter()
        for operation in order:
            if operation.what == "submit":
                submitted.add(operation.argument)
            elif operation.argument not in submitted:
                return False
            else:
                effected[operation.argument] += 1
        accepted = {operation.argument for operation in order if operation.what == "submit" and operation.ok}
        return max(effected.values(), default=0) <= 1 and all(effected[item] == 1 for item in accepted)

    if "submit" in history.names:
        possible = any(explained(History.of(guess), once) for guess in named(history.operations))
        agree(invariants.exactly_once, history, possible)


@given(errands())
@thorough
def test_nothing_lost_is_exact(history: History) -> None:
    def kept(order: Sequence[Operation]) -> bool:
        submitted, found = set(), set()
        for operation in order:
            if operation.what == "submit":
                submitted.add(operation.argument)
            elif operation.argument in submitted:
                found.add(operation.argument)
        return all(operation.argument in found for operation in order if operation.what == "submit" and operation.ok)

    if "submit" in history.names:
        possible = any(explained(History.of(guess), kept) for guess in named(history.operations))
        agree(partial(invariants.nothing_lost, put="submit", found=["effect"]), history, possible)
