"""The RM registry and its replication: all current members take a change, or nobody does (RM Registry)."""

from collections.abc import Iterator
from dataclasses import replace

from holdfast.check.walk.vocabulary import Branch, Command, Rule, Seen
from holdfast.conformance.lockd.walks.rules import accepted
from holdfast.conformance.lockd.walks.sights import Changed, Registered
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import SPIES, WRITES, State
from holdfast.conformance.shared.walks import rule

Branches = Iterator[Branch[State]]
FAILED = "tc_rm_replication_failed"


def change(state: State, command: Command, seen: Seen, _spans: Spans) -> Branches:
    """A register or unregister. One that changes nothing may end before it asks the members."""
    changed: Changed = seen.what
    pair, add = (command.get("backend"), command.get("endpoint")), command.name == "register"
    same = (pair in state.registry) == add
    after = _changed(state, pair, add=add) if not same else state
    if command.flag("replica"):
        yield Branch(_here_only(changed, after, pair[0]), after)
        return
    ill = [each for each in state.others if state.trouble(each)]
    if not ill or same:
        yield Branch(_everywhere(changed, after, command, same=same), after)
    if ill:
        # Whether putting an entry back moves its time is open.
        yield Branch(_nowhere(state, changed, ill, had=pair in state.registry), state.moved(pair[0]))


def _changed(state: State, pair: tuple[str, str], *, add: bool) -> State:
    pairs = state.registry | {pair} if add else state.registry - {pair}
    return replace(state, registry=pairs).moved(pair[0])


def _answered(changed: Changed, after: State, backend: str, row: str) -> tuple[Rule, ...]:
    wanted = tuple(sorted(endpoint for name, endpoint in after.registry if name == backend))
    return (
        accepted(changed.answer, row),
        rule(f"the endpoints {', '.join(wanted) or 'none'}", tuple(sorted(changed.endpoints)) == wanted, "TC-RM-03"),
    )


def _here_only(changed: Changed, after: State, backend: str) -> tuple[Rule, ...]:
    silent = rule("no replica of a replica", not any(changed.replicas.values()), "TC-RM-10")
    return (*_answered(changed, after, backend, "TC-RM-10"), silent)


def _everywhere(changed: Changed, after: State, command: Command, *, same: bool) -> tuple[Rule, ...]:
    members = [each for each in after.others if each in SPIES]
    add = command.name == "register"
    there = all(changed.after[each] is add for each in members)
    strangers = sum(changed.replicas[each] for each in SPIES if each not in members)
    return (
        *_answered(changed, after, command.get("backend"), "TC-RM-04"),
        rule("the change at every member", there or same, "TC-RM-04"),
        rule("no replica at who is no member", not strangers, "TC-RM-04"),
        rule("marked replicas", changed.marked, "TC-RM-10"),
    )


def _nowhere(state: State, changed: Changed, ill: list[str], *, had: bool) -> tuple[Rule, ...]:
    """A member fails. What a member held before is as before, if it agreed with the node: the node can't know more."""
    unprobed = [each for each in ill if state.trouble(each) != WRITES]
    row = "TC-RM-05" if unprobed else "TC-RM-06"
    failed = changed.answer.status == 502 and changed.answer.code == FAILED
    kept = all(changed.after[each] is had for each in SPIES if changed.before[each] is had)
    rules = (rule(f"502 {FAILED}", failed, row), rule("no member changed", kept, "TC-RM-07"))
    if unprobed:
        return (*rules, rule("no replica after a failed probe", not any(changed.replicas.values()), "TC-RM-05"))
    return rules


def listed(state: State, _command: Command, seen: Seen, _spans: Spans) -> Branches:
    """The registry as the node shows it: each pair once, and the time of an entry only moves with the entry."""
    sight: Registered = seen.what
    missing = state.registry - set(sight.pairs)
    surplus = set(sight.pairs) - state.registry
    known = dict(state.updated)
    moved = [each for each, at in known.items() if sight.updated.get(each) != at]
    rules = (
        accepted(sight.answer, "TC-RM-03"),
        rule(f"{_told(missing)} in the registry", not missing, "TC-RM-03"),
        rule(f"no {_told(surplus)} in the registry", not surplus, "TC-RM-06"),
        rule("each pair once", len(sight.pairs) == len(set(sight.pairs)), "TC-RM-08"),
        rule(f"the old time of {', '.join(moved)}", not moved, "TC-RM-08"),
    )
    yield Branch(rules, replace(state, updated=tuple(sorted(sight.updated.items()))))


def _told(pairs: frozenset[tuple[str, str]] | set[tuple[str, str]]) -> str:
    return ", ".join(f"{backend} {endpoint}" for backend, endpoint in sorted(pairs)) or "nothing else"
