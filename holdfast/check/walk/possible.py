"""Which states a target may be in, given everything that was done and seen so far.

Theory of operation. The set starts with one state. Before a command is judged, time passes: a timer whose window has
surely ended has fired, one whose window has surely not begun has not, and one in between may have, so the set splits.
Then every branch of the command is tried in every state; those whose rules all hold are the new set. An effect happened
somewhere between sending and receiving, so "surely" means: measured from the end of the interval that speaks for the
target. Commands sent at the same instant are tried in every order. Looking at something is a command without effect,
which is how a set shrinks again.

An empty set means that the target did what no reading allows. Whom to blame is then found by asking what would have
explained it. If one timer had fired before its window (too early) or had still not fired after it (overdue), the rows
of that timer are broken. Else it is the branch that was closest: the one with the fewest broken rules; its first
broken rule names the rows.
"""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Generic

from holdfast.check.walk.vocabulary import Branch, Broken, Command, Model, S, Seen, Timer, TooUncertain

Call = tuple[Command, Seen]
# A timer as long as its window stays the same.
_Known = tuple[str, float, float]
# With more states than this a look excludes hardly anything.
MOST_STATES = 400


@dataclass(frozen=True)
class _Relaxed:
    """Timers whose window is taken to be open on one side, to see whether that would explain what was seen."""

    early: str = ""
    late: str = ""


@dataclass(frozen=True)
class _Miss(Generic[S]):
    """A branch that did not survive, and how many calls of its step had been explained before it."""

    depth: int
    branch: Branch[S]

    @property
    def closeness(self) -> tuple[int, int]:
        return self.depth, -len(self.branch.broken)


class Possible(Generic[S]):
    """The states that a target may be in. `judged` counts, by row, how often one of its rules was held up to it."""

    def __init__(self, model: Model[S], states: Iterable[S]) -> None:
        self._model = model
        self.states: tuple[S, ...] = tuple(dict.fromkeys(states))
        self.judged: dict[str, int] = {}
        self._before = -math.inf

    def take(self, *calls: Call) -> tuple[str, ...]:
        """Keeps the states that explain these calls, made at the same instant; returns what would have been legal.

        Raises Broken if nothing explains them.
        """
        misses: list[_Miss[S]] = []
        kept, alive = self._explain(calls, _Relaxed(), misses)
        if not kept:
            raise self._broken(calls, misses)
        kept = tuple(self._model.merged(kept))
        if len(kept) > MOST_STATES:
            raise TooUncertain
        self.states = kept
        self._before = max(self._before, min(seen.sent for _, seen in calls))
        for row in {row for branch in alive for rule in branch.rules for row in rule.rows}:
            self.judged[row] = self.judged.get(row, 0) + 1
        return tuple(dict.fromkeys(branch.describe() for branch in (*alive, *(miss.branch for miss in misses))))

    def timers(self) -> list[Timer[S]]:
        """Returns the timers of all states; those of one name are one, with the widest window."""
        found: dict[str, Timer[S]] = {}
        for timer in (timer for state in self.states for timer in self._model.timers(state)):
            known = found.get(timer.name)
            found[timer.name] = _wider(known, timer) if known else timer
        return sorted(found.values(), key=lambda timer: timer.name)

    def ready(self, command: Command) -> bool:
        """Whether the command makes sense whichever of the states the target is in."""
        return all(self._model.ready(state, command) for state in self.states)

    def _explain(
        self, calls: Sequence[Call], relaxed: _Relaxed, misses: list[_Miss[S]]
    ) -> tuple[tuple[S, ...], list[Branch[S]]]:
        survivors: dict[S, None] = {}
        chosen: list[Branch[S]] = []
        for order in itertools.permutations(calls):
            states: tuple[S, ...] = self.states
            for depth, (command, seen) in enumerate(order):
                branches = [
                    branch
                    for state in self._advance(states, seen, relaxed)
                    for branch in self._model.branches(state, command, seen)
                ]
                misses += [_Miss(depth, branch) for branch in branches if branch.broken]
                alive = [branch for branch in branches if not branch.broken]
                chosen += alive
                states = tuple(dict.fromkeys(branch.state for branch in alive))
            survivors |= dict.fromkeys(states)
        return tuple(survivors), chosen

    def _advance(self, states: Iterable[S], seen: Seen, relaxed: _Relaxed) -> tuple[S, ...]:
        """Returns what the states may have become by the time at which the command took effect."""
        done: dict[S, None] = {}
        # What has not fired yet is known by its window too: if another timer gives it a new one, it may fire after all.
        todo: list[tuple[S, frozenset[_Known]]] = [(state, frozenset()) for state in states]
        tried: set[tuple[S, frozenset[_Known]]] = set(todo)
        while todo:
            state, not_yet = todo.pop()
            due = [timer for timer in self._model.timers(state) if _known(timer) not in not_yet]
            due = [timer for timer in due if timer.earliest <= seen.received or timer.name == relaxed.early]
            if not due:
                done[state] = None
                continue
            timer = min(due, key=lambda timer: (timer.earliest, timer.name))
            # It had not fired when the last call took effect, or the state would say so.
            since = max(timer.earliest, self._before)
            until = max(since, min(timer.latest, seen.received))
            further = [(after, not_yet) for after in timer.fire(since, until)]
            if timer.latest > seen.sent or timer.name == relaxed.late:
                further.append((state, not_yet | {_known(timer)}))
            todo += [each for each in further if each not in tried]
            tried.update(further)
            if len(tried) > 50 * MOST_STATES:
                raise TooUncertain
        return tuple(done)

    def _broken(self, calls: Sequence[Call], misses: list[_Miss[S]]) -> Broken:
        seen = "; ".join(call[1].text for call in calls)
        late = any(call[1].late for call in calls)
        wrong = self._wrong_timer(calls)
        expected = tuple(dict.fromkeys(miss.branch.describe() for miss in misses))
        if wrong is not None:
            timer, overdue = wrong
            said = f"{timer.name} {'by now' if overdue else 'not yet'}"
            legal = tuple(dict.fromkeys((*expected, said)))
            rows = timer.rows if overdue else timer.not_before or timer.rows
            return Broken(rows, legal, seen, late or overdue > 0, overdue)
        if not misses:
            return Broken((), ("a continuation that the model knows",), seen, late)
        nearest = max(misses, key=lambda miss: miss.closeness).branch
        first = nearest.broken[0]
        return Broken(first.rows, expected, seen, late or first.late, rules=nearest.broken)

    def _wrong_timer(self, calls: Sequence[Call]) -> tuple[Timer[S], float] | None:
        """Returns the one timer whose being early or overdue would explain the calls, and by how much it is overdue.

        All that is overdue is asked first: a deadline has passed unseen there, while something that ended too early
        would explain nearly everything that is missing.
        """
        sent = min(seen.sent for _, seen in calls)
        received = max(seen.received for _, seen in calls)
        timers = [timer for timer in self.timers() if timer.rows]
        for timer in (each for each in timers if each.latest <= sent):
            if self._explain(calls, _Relaxed(late=timer.name), [])[0]:
                return timer, max(sent - timer.latest, 1e-3)
        for timer in (each for each in timers if each.earliest > received):
            if self._explain(calls, _Relaxed(early=timer.name), [])[0]:
                return timer, 0.0
        return None


def _known(timer: Timer[S]) -> _Known:
    return timer.name, timer.earliest, timer.latest


def _wider(one: Timer[S], other: Timer[S]) -> Timer[S]:
    return replace(one, earliest=min(one.earliest, other.earliest), latest=max(one.latest, other.latest))
