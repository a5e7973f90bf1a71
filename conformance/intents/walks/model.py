"""The model that walks go over: which commands there are, in which situations, and what each may lead to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from holdfast.check.walk.draw import WAIT
from holdfast.check.walk.vocabulary import Branch, Command, Pair, Seen, Step, Timer
from holdfast.conformance.intents.walks import calls, goal, looks, operators, sentences
from holdfast.conformance.intents.walks.commands import (
    MOST_RECORDINGS,
    Sight,
    all_commands,
    all_openings,
    all_races,
    key_of,
    ready,
)
from holdfast.conformance.intents.walks.merging import merged
from holdfast.conformance.intents.walks.situations import kind, situation
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.starts import Start
from holdfast.conformance.intents.walks.state import State
from holdfast.conformance.intents.walks.timers import timers

Calls = Mapping[str, Callable[[State, Command, Seen, Spans], Iterator[Branch[State]]]]


def _start(state: State, command: Command, seen: Seen, spans: Spans) -> Iterator[Branch[State]]:
    return Start(state, command, seen, spans).branches()


CALLS: Calls = {
    "start": _start,
    "stop": calls.stop,
    "refused": calls.refused,
    "malformed": calls.malformed,
    "forwarded": calls.forwarded,
    "lost": calls.lost,
    "ask": calls.ask,
    "pace": calls.pace,
    "redeliver": calls.redeliver,
    "seize": operators.take,
    "lose": operators.take,
    "yield": operators.give_back,
    "kill": operators.kill,
    "term": operators.term,
    "stand": operators.stand,
    "resume": operators.resume,
    "begin": operators.begin,
    "restart": operators.api,
    "flip": operators.flip,
    "rotate": operators.secrets,
    "forget": operators.secrets,
    "turn back": operators.secrets,
    "polls": looks.polls,
    "stored": looks.stored,
    "runs": looks.runs,
    "logged": looks.logged,
}
# After these anything may have run.
_ABOUT_ALL = frozenset({WAIT, "kill", "term", "stand", "resume", "begin", "redeliver"})


@dataclass(frozen=True)
class IntentsModel:
    spans: Spans
    sight: Sight

    def timers(self, state: State) -> Iterator[Timer[State]]:
        return timers(state, self.spans)

    def branches(self, state: State, command: Command, seen: Seen) -> Iterable[Branch[State]]:
        return CALLS[command.name](state, command, seen, self.spans)

    def merged(self, states: Sequence[State]) -> Sequence[State]:
        return merged(states)

    def ready(self, state: State, command: Command) -> bool:
        if command.name == WAIT:
            return any(timer.name == command.get("for") for timer in self.timers(state))
        if self.sight.upsets and command.name == "start" and not key_of(command, self.spans).live:
            recordings = [each for each in state.living if not each.key.live]
            return len(recordings) < MOST_RECORDINGS and ready(state, command, self.spans)
        return ready(state, command, self.spans)

    def commands(self, state: State) -> Iterable[Command]:
        return all_commands(state, self.sight)

    def openings(self) -> Sequence[Sequence[Command]]:
        return all_openings(self.sight)

    def races(self, _state: State) -> Iterable[Step]:
        return all_races(self.sight)

    def looks(self, _states: Sequence[State], step: Step) -> Iterator[Command]:
        """First the polls, which tell what has become of sessions; then what they hold, and whether they ran."""
        yield Command.of("polls", after=step[0].name)
        if self.sight.store:
            yield Command.of("stored", after=step[0].name)
        if self.sight.pipelines:
            about = {"" if each.name in _ABOUT_ALL else each.get("target") for each in step}
            yield from (Command.of("runs", target=target) for target in sorted(about))
        if self.sight.log:
            yield Command.of("logged")

    def situation(self, state: State, command: Command) -> str:
        return situation(state, command, self.spans)

    def kind(self, command: Command) -> str:
        return kind(command)

    def goal(self) -> frozenset[Pair]:
        return goal.pairs(self.sight)

    def describe(self, command: Command) -> str:
        return sentences.describe(command)
