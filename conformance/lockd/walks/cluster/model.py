"""The model of two nodes: commands through either of them, the relation being whether that node leads."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from holdfast.check.walk.vocabulary import NO_NODE, Branch, Command, Pair, Seen, Step, Timer
from holdfast.conformance.lockd.walks import sentences
from holdfast.conformance.lockd.walks.cluster import calls
from holdfast.conformance.lockd.walks.cluster.state import NODES, Cluster, other
from holdfast.conformance.lockd.walks.commands import LEASE_CALLS, STATES, TERMS
from holdfast.conformance.lockd.walks.situations import kind
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import APPLIED, BACKENDS, BEFORE, DECIDED, ENDPOINTS, FAR, STRANGER
from holdfast.conformance.shared.walks import Span, rule

RELATIONS = ("leader", "follower")
# Those without a participant elsewhere.
NEAR = tuple(txn for txn in DECIDED if txn != FAR)
CALLS: Mapping[str, Callable[[Cluster, Command, Seen, Spans], Iterator[Branch[Cluster]]]] = {
    "announce": calls.announce,
    "leave": calls.leave,
    "register": calls.change,
    "unregister": calls.change,
    "decide": calls.decide,
    "apply": calls.apply,
    "replay": calls.replay,
    **dict.fromkeys(LEASE_CALLS, calls.lease),
    "leader": calls.shown,
    "members": calls.listed,
    "registry": calls.registered,
}


@dataclass(frozen=True)
class ClusterModel:
    """`below` says whether there is a term below the leader's: the first leader of all may lead in term 1."""

    spans: Spans
    below: bool = True

    def timers(self, state: Cluster) -> Iterator[Timer[Cluster]]:
        for node, since in state.strangers:
            yield Timer(
                f"the end of {STRANGER}'s membership at {node}",
                "membership",
                since.lo + self.spans.membership_ttl - self.spans.tolerance,
                since.hi + self.spans.membership_ttl + self.spans.tolerance,
                partial(_lapsed, state, node),
                about=(("node", node),),
            )

    def branches(self, state: Cluster, command: Command, seen: Seen) -> Iterable[Branch[Cluster]]:
        if seen.what is None:
            return [Branch((rule("an answer", False, "TC-JOIN-01"),), state)]
        return CALLS[command.name](state, command, seen, self.spans)

    def merged(self, states: Sequence[Cluster]) -> Sequence[Cluster]:
        found: dict[Cluster, Cluster] = {}
        for state in states:
            shape = replace(state, strangers=tuple((node, BEFORE) for node, _ in state.strangers))
            found[shape] = _widest(found.get(shape, state), state)
        return list(found.values())

    def ready(self, _state: Cluster, _command: Command) -> bool:
        return True

    def commands(self, _state: Cluster) -> Iterator[Command]:
        for node in NODES:
            yield from (Command.of(name, who=STRANGER, node=node) for name in ("announce", "leave"))
            yield from _changes(node)
            yield from _transactions(node)
            for name in LEASE_CALLS:
                yield from (Command.of(name, who=STRANGER, term=term, node=node) for term in TERMS)

    def openings(self) -> Sequence[Sequence[Command]]:
        return ()

    def races(self, _state: Cluster) -> Iterator[Step]:
        """Both decisions of one transaction, each through another node; changes of two backends likewise."""
        first, second = NODES
        for txn in NEAR:
            one, two = STATES
            yield (
                Command.of("decide", txn=txn, node=first, **{"as": one}),
                Command.of("decide", txn=txn, node=second, **{"as": two}),
            )
        end = ENDPOINTS[0]
        yield (
            Command.of("register", backend=BACKENDS[0], endpoint=end, node=first),
            Command.of("unregister", backend=BACKENDS[1], endpoint=end, node=second),
        )

    def looks(self, _states: Sequence[Cluster], step: Step) -> Iterator[Command]:
        touched = sorted({command.get("txn") for command in step if command.name == "decide"})
        for node in NODES:
            yield from (Command.of(name, node=node) for name in ("members", "registry", "leader"))
            yield from (Command.of("replay", txn=txn, node=node) for txn in touched)

    def situation(self, state: Cluster, command: Command) -> str:
        node = command.get("node")
        match command.name:
            case "announce" | "leave":
                return "listed" if state.stranger(node) else "unlisted"
            case "register" | "unregister":
                return _pair(state, command)
            case "decide" | "replay":
                return _record(dict(state.decided).get(command.get("txn")), command)
            case "apply":
                known = state.record(node, command.get("txn"))
                return _record(known.state if known else None, command)
        return "led"

    def kind(self, command: Command) -> str:
        return kind(command)

    def goal(self) -> frozenset[Pair]:
        known = [(where, what) for where, what in _pairs() if self.below or not what.endswith("below")]
        found = {Pair(where, what, relation) for where, what in known for relation in RELATIONS}
        return frozenset(found | {Pair("membership", f"wait until {side}", NO_NODE) for side in ("before", "after")})

    def describe(self, command: Command) -> str:
        return f"{sentences.describe(command)}, at {command.get('node')}"


def _lapsed(state: Cluster, node: str, _lo: float, _hi: float) -> list[Cluster]:
    return [state.with_stranger(node, None)]


def _widest(one: Cluster, two: Cluster) -> Cluster:
    both = zip(one.strangers, two.strangers, strict=True)
    spans = tuple((node, Span(min(a.lo, b.lo), max(a.hi, b.hi))) for (node, a), (_, b) in both)
    return replace(one, strangers=spans)


def _changes(node: str) -> Iterator[Command]:
    for name in ("register", "unregister"):
        for backend in BACKENDS:
            for endpoint in ENDPOINTS:
                yield Command.of(name, backend=backend, endpoint=endpoint, node=node)
                yield Command.of(name, backend=backend, endpoint=endpoint, node=node, replica=True)


def _transactions(node: str) -> Iterator[Command]:
    for way in STATES:
        yield from (Command.of("decide", txn=txn, node=node, **{"as": way}) for txn in NEAR)
        for txn in APPLIED:
            yield from (Command.of("apply", txn=txn, term=term, node=node, **{"as": way}) for term in ("", *TERMS))
    yield from (Command.of("replay", txn=txn, node=node) for txn in NEAR)


def _pair(state: Cluster, command: Command) -> str:
    node, pair = command.get("node"), (command.get("backend"), command.get("endpoint"))
    here, there = pair in state.registry(node), pair in state.registry(other(node))
    where = "everywhere" if here and there else "here" if here else "there" if there else "nowhere"
    return f"{where} {'beside a stranger' if state.stranger(node) else 'among two'}"


def _record(known: str | None, command: Command) -> str:
    if known is None:
        return "fresh"
    return "decided" if command.get("as") in ("", known) else "contradicted"


def _pairs() -> Iterator[tuple[str, str]]:
    yield from ((listing, what) for listing in ("listed", "unlisted") for what in ("announce", "leave"))
    for where in ("everywhere", "here", "there", "nowhere"):
        for company in ("beside a stranger", "among two"):
            for name in ("register", "unregister"):
                yield from ((f"{where} {company}", f"{name}{mark}") for mark in ("", " as replica"))
    for record in ("fresh", "decided", "contradicted"):
        yield record, "decide"
        yield from ((record, f"apply {term}") for term in ("without term", *TERMS))
    yield from ((record, "replay") for record in ("fresh", "decided"))
    yield from (("led", f"{name} {term}") for name in LEASE_CALLS for term in TERMS)
