"""Draws the next step of a walk: most often one that was tried least, now and then any.

Always taking the least visited would go in circles: the way to a rare state leads through common ones. So where no pair
is missing the draw follows what coverage has learnt about ways, and a share of the draws is free. After a wait for a
deadline the next command is one that can tell on which side of it the target is; any other would let the deadline pass
unseen.

Left to themselves, walks stay near an empty target: what fills it is a few commands of a hundred, and much empties it.
So most walks begin with one of the openings that the model names, and some never wait.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Generic

from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.vocabulary import NO_NODE, Command, Model, Pair, S, Step, Timer, World

WAIT = "wait"
# Share of the draws that do not look at coverage, and of those that send two commands at once.
FREE, TOGETHER = 0.2, 0.08
# Share of the walks that never wait for a deadline: waiting empties a target, so what needs many leases, sessions or
# entries at the same time is seldom come to between waits.
IN_A_HURRY = 0.4
# Share of the others that go where pairs are missing, if none is missing here.
TOWARDS = 0.7
# Seconds by which "just before" and "just after" keep away from a deadline's window.
BEFORE, AFTER = 0.1, 0.4


@dataclass(frozen=True)
class Drawer(Generic[S]):
    model: Model[S]
    world: World
    coverage: Coverage
    random: Random
    # Whether this walk waits for deadlines at all, and what it begins with.
    patient: bool = True
    opening: list[Step] = field(default_factory=list)

    @classmethod
    def of(cls, model: Model[S], world: World, coverage: Coverage, draws: Random) -> "Drawer[S]":
        """Returns what draws one walk: some are in a hurry, some begin in the middle of things."""
        openings = [*model.openings(), ()]
        opening: list[Step] = [(each,) for each in draws.choice(openings)]
        return cls(model, world, coverage, draws, patient=draws.random() >= IN_A_HURRY, opening=opening)

    def draw(self, possible: Possible[S], previous: Sequence[Step], now: float, patience: float) -> Step | None:
        """Returns the next step; None if nothing can be done. No single wait is longer than `patience` seconds."""
        while self.opening:
            step = self.opening.pop(0)
            if all(self._allowed(possible, each) for each in step):
                return step
        if self.random.random() < TOGETHER and (races := self._races(possible)):
            return self.random.choice(races)
        choice = self._candidates(possible, now, patience)
        if not choice:
            return None
        choice = _that_can_tell(choice, previous) or choice
        last = previous[-1] if previous else ()
        before = self.model.kind(last[0]) if last else "begin"
        if self.random.random() < FREE:
            return (self.random.choice(choice),)
        return (self._least_known([(self.pair(possible, each), each) for each in choice], before),)

    def _least_known(self, choice: Sequence[tuple[Pair, Command]], before: str) -> Command:
        """Returns a command whose pair is missing; else one that leads where pairs are missing; else the rarest."""
        missing = [each for pair, each in choice if pair in self.coverage.goal and not self.coverage.pairs[pair]]
        if missing:
            return self.random.choice(missing)
        promises = {pair: self.coverage.promise(pair) for pair, _ in choice}
        most = max(promises.values())
        if most and self.random.random() < TOWARDS:
            return self.random.choice([each for pair, each in choice if promises[pair] == most])
        scored = [(self.coverage.visits(pair, before), each) for pair, each in choice]
        least = min(score for score, _ in scored)
        return self.random.choice([each for score, each in scored if score == least])

    def pair(self, possible: Possible[S], command: Command) -> Pair:
        if command.name == WAIT:
            return Pair(command.get("kind"), f"{WAIT} until {command.get('side')}", NO_NODE)
        situation = self.model.situation(possible.states[0], command)
        return Pair(situation, self.model.kind(command), self.world.relation(command))

    def _candidates(self, possible: Possible[S], now: float, patience: float) -> list[Command]:
        drawn = [each for each in self.model.commands(possible.states[0]) if self._allowed(possible, each)]
        timers = possible.timers() if self.patient else []
        waits = [wait for timer in timers for wait in waits_for(timer, now, patience)]
        return [*drawn, *waits]

    def _races(self, possible: Possible[S]) -> list[Step]:
        races = self.model.races(possible.states[0])
        return [step for step in races if all(self._allowed(possible, each) for each in step)]

    def _allowed(self, possible: Possible[S], command: Command) -> bool:
        return self.world.can(command) and possible.ready(command)


def _that_can_tell(choice: Sequence[Command], previous: Sequence[Step]) -> list[Command]:
    """Returns the commands about what was just waited for; none if the last step was no wait."""
    last = previous[-1][0] if previous else None
    if last is None or last.name != WAIT:
        return []
    about = set(last.args)
    return [each for each in choice if each.name != WAIT and about & set(each.args)]


def waits_for(timer: Timer[S], now: float, patience: float) -> list[Command]:
    """Returns the waits that are left for a deadline: to just before it, and to just after it."""
    found = []
    if not timer.waited_for:
        return []
    about = dict(timer.about)
    if 0 < timer.earliest - BEFORE - now <= patience:
        found.append(Command.of(WAIT, **{**about, "for": timer.name, "kind": timer.kind, "side": "before"}))
    if 0 < timer.latest + AFTER - now <= patience:
        found.append(Command.of(WAIT, **{**about, "for": timer.name, "kind": timer.kind, "side": "after"}))
    return found
