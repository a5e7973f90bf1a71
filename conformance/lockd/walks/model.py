"""The model that walks go over: which commands there are, in which situations, and what each may lead to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.check.walk.draw import WAIT
from holdfast.check.walk.vocabulary import Branch, Command, Pair, Seen, Step, Timer
from holdfast.conformance.lockd.walks import decisions, goal, members, registry, sentences, votes
from holdfast.conformance.lockd.walks.commands import all_commands, all_openings, all_races, ready
from holdfast.conformance.lockd.walks.merging import merged
from holdfast.conformance.lockd.walks.situations import kind, situation
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import State
from holdfast.conformance.lockd.walks.timers import timers
from holdfast.conformance.shared.walks import rule, span_of

Calls = Mapping[str, Callable[[State, Command, Seen, Spans], Iterator[Branch[State]]]]


def _peer(state: State, command: Command, seen: Seen, _spans: Spans) -> Iterator[Branch[State]]:
    """A spy of ours behaves otherwise from now on."""
    who = command.get("who")
    if command.name == "votes":
        refusing = state.refusing - {who} if command.flag("on") else state.refusing | {who}
        changed = state.with_refusing(refusing)
    else:
        changed = state.with_trouble(who, command.get("how"))
    yield Branch((), changed.after(state, span_of(seen), 0.0))


CALLS: Calls = {
    "announce": members.announce,
    "depose": members.depose,
    "leave": members.leave,
    "exit": members.exit_,
    "return": members.come_back,
    "crash": members.crash,
    "stop": members.stop,
    "intrude": members.intrude,
    "malformed": members.malformed,
    "votes": _peer,
    "trouble": _peer,
    "report": members.report,
    "acquire": votes.acquire,
    "renew": votes.renew,
    "release": votes.release,
    "register": registry.change,
    "unregister": registry.change,
    "decide": decisions.decide,
    "apply": decisions.apply,
    "replay": decisions.replay,
    "leader": votes.shown,
    "members": members.listed,
    "registry": registry.listed,
    "heard": members.heard,
}


@dataclass(frozen=True)
class LockdModel:
    """`upsets`: what may be done to the process of the node, whose store then outlives it."""

    spans: Spans
    upsets: tuple[str, ...] = ()

    def timers(self, state: State) -> Iterator[Timer[State]]:
        return timers(state, self.spans)

    def branches(self, state: State, command: Command, seen: Seen) -> Iterable[Branch[State]]:
        if seen.what is None:
            return [Branch((rule("an answer", False, "TC-JOIN-01"),), state)]
        return CALLS[command.name](state, command, seen, self.spans)

    def merged(self, states: Sequence[State]) -> Sequence[State]:
        return merged(states)

    def ready(self, state: State, command: Command) -> bool:
        return ready(state, command)

    def commands(self, state: State) -> Iterable[Command]:
        return all_commands(state, self.upsets)

    def openings(self) -> Sequence[Sequence[Command]]:
        return all_openings()

    def races(self, _state: State) -> Iterable[Step]:
        return all_races()

    def looks(self, _states: Sequence[State], step: Step) -> Iterator[Command]:
        """First what was waited for: only the first call after a deadline can tell that it was missed."""
        waited = step[0].name == "depose" or (step[0].name == WAIT and step[0].get("kind") != "membership")
        first = ("leader", "members") if waited else ("members", "leader")
        yield from (Command.of(name) for name in (*first, "registry", "heard"))
        touched = {command.get("txn") for command in step if command.name in ("decide", "apply")}
        yield from (Command.of("replay", txn=txn) for txn in sorted(touched))

    def situation(self, state: State, command: Command) -> str:
        return situation(state, command)

    def kind(self, command: Command) -> str:
        return kind(command)

    def goal(self) -> frozenset[Pair]:
        return goal.pairs(self.upsets)

    def describe(self, command: Command) -> str:
        return sentences.describe(command)
