"""The model that walks go over: which commands there are, in which situations, and what each may lead to."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from holdfast.check.walk.vocabulary import Branch, Command, Pair, Seen, Step, Timer
from holdfast.conformance.admission.walks import goal, sentences
from holdfast.conformance.admission.walks.attempts import Attempt, Malformed
from holdfast.conformance.admission.walks.calls import Call
from holdfast.conformance.admission.walks.commands import CONNECT, all_commands, all_openings, all_races, ready
from holdfast.conformance.admission.walks.merging import merged
from holdfast.conformance.admission.walks.situations import kind, situation
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import OWNERS, PEOPLE, ROOMS, State
from holdfast.conformance.admission.walks.timers import timers
from holdfast.conformance.shared.walks import rule


@dataclass(frozen=True)
class Sight:
    """What this target lets a walk see and do."""

    nodes: int = 1
    records: bool = False
    events: bool = False
    # Counters and gauges, where nobody else is counted.
    metrics: bool = False
    upsets: tuple[str, ...] = ()
    cancels: bool = True


@dataclass(frozen=True)
class AdmissionModel:
    spans: Spans
    sight: Sight

    def timers(self, state: State) -> Iterator[Timer[State]]:
        return timers(state, self.spans)

    def branches(self, state: State, command: Command, seen: Seen) -> Iterable[Branch[State]]:
        if seen.late:
            undecided = rule("an answer that decides something", False, "AD-TIME-03")
            return [Branch((undecided,), state)]
        if command.name == CONNECT:
            return Attempt(state, command, seen, self.spans).branches()
        if command.name == "malformed":
            return Malformed(state, command, seen, self.spans).branches()
        if command.name == "lock":
            return self._failing(state, command, seen)
        return Call(state, command, seen, self.spans).branches()

    def _failing(self, state: State, command: Command, seen: Seen) -> Iterator[Branch[State]]:
        """Attempts one after the other, each in the states that the one before it left."""
        attempt = Command.of(CONNECT, who=command.get("who"), where=command.get("where"), build="old")
        todo: list[Branch[State]] = [Branch((), state)]
        for each in seen.what:
            further = [
                Branch((*before.rules, *after.rules), after.state)
                for before in todo
                for between in self._meanwhile(before.state, command, each)
                for after in Attempt(between, attempt, each, self.spans).branches()
            ]
            todo = [branch for branch in further if not branch.broken] or further
        yield from todo

    def _meanwhile(self, state: State, command: Command, seen: Seen) -> Iterator[State]:
        """Yields the state, also without the failures that may have left the window between two attempts."""
        yield state
        user = OWNERS[command.get("who")]
        failures = state.failed(user)
        if failures and failures[0].lo + self.spans.rate_window - self.spans.tolerance <= seen.received:
            yield from self._meanwhile(state.with_failures(user, failures[1:]), command, seen)

    def merged(self, states: Sequence[State]) -> Sequence[State]:
        return merged(states)

    def ready(self, state: State, command: Command) -> bool:
        return ready(state, command)

    def commands(self, state: State) -> Iterable[Command]:
        sight = self.sight
        return all_commands(state, sight.nodes, self.spans.rate_failures, upsets=sight.upsets, cancels=sight.cancels)

    def openings(self) -> Sequence[Sequence[Command]]:
        return all_openings(self.sight.nodes)

    def races(self, state: State) -> Iterable[Step]:
        return all_races(state, self.sight.nodes)

    def looks(self, states: Sequence[State], step: Step) -> Iterator[Command]:
        """What Redis and the log hold, which tells most; then sockets, and the polls of all who are or were about."""
        if self.sight.records:
            yield Command.of("records")
        if self.sight.events:
            yield Command.of("events")
        yield Command.of("sockets")
        touched = {(command.get("who"), command.get("where")) for command in step}
        for who in PEOPLE:
            for where in ROOMS:
                if (who, where) in touched or any(_is_about(state, who, where) for state in states):
                    yield Command.of("poll", who=who, where=where)
        if self.sight.metrics:
            yield Command.of("metrics")

    def situation(self, state: State, command: Command) -> str:
        return situation(state, command)

    def kind(self, command: Command) -> str:
        return kind(command)

    def goal(self) -> frozenset[Pair]:
        return goal.pairs(several=self.sight.nodes > 1, upsets=self.sight.upsets, cancels=self.sight.cancels)

    def describe(self, command: Command) -> str:
        return sentences.describe(command)


def _is_about(state: State, who: str, where: str) -> bool:
    session = state.session(who)
    return who in state.room(where).line or (session is not None and session.where == where)
