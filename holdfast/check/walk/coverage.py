"""What walks have reached, so that the next command can be one that was tried least.

A *pair* is a command in a class of states, through a node that did or did not deal with its subject before. A *triple*
is a pair with the command before it: what was missed in the field was seldom a command in a state, and often the same
command in a state that was reached another way. The model says which pairs can be reached; the number of triples
cannot be told beforehand, so those reached are counted.

Rare situations are reached in several steps. So coverage also learns where commands lead: from one situation to the
next, and how often. What a command promises is what may be missing where it leads, and, for less, what can be reached
from there: a few rounds of value iteration over the ways that were seen. A situation says what one command is about,
and others are about something else; so pairs that share a word with the new situation count as near, if the old one
did not have it. That is a guess, and guesses are cheap: a wrong one costs a step.
"""

from collections import Counter
from dataclasses import dataclass, field

from holdfast.check.walk.vocabulary import Pair

Triple = tuple[Pair, str]
# How much less what is one step further counts, how many steps are looked ahead, and after how many steps the ways
# that were seen are weighed again.
FURTHER, AHEAD, AGAIN = 0.7, 4, 100
# After so many arrivals a situation is worth half of what is missing there: it was not for want of coming.
OFTEN = 3


@dataclass
class Coverage:
    goal: frozenset[Pair] = frozenset()
    pairs: Counter[Pair] = field(default_factory=Counter)
    triples: Counter[Triple] = field(default_factory=Counter)
    # By situation and command: the situations after.
    leads: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    # `wanted`, and the goal and number of pairs that it was counted for.
    _wanted: tuple[frozenset[Pair], int, Counter[str]] = field(default=(frozenset(), 0, Counter()), repr=False)
    # What a command promises in a situation, and the best of them by situation; and what was weighed for it.
    _promises: dict[tuple[str, str], float] = field(default_factory=dict, repr=False)
    _values: dict[str, float] = field(default_factory=dict, repr=False)
    _weighed: tuple[frozenset[Pair], int, int] = field(default=(frozenset(), -1, 0), repr=False)
    _steps: int = field(default=0, repr=False)
    # How often a command led to a situation from one that begins with another word.
    _arrived: Counter[str] = field(default_factory=Counter, repr=False)

    def led(self, pair: Pair, situation: str) -> None:
        """Notes in which situation a command left what it is about."""
        self._steps += 1
        self._arrived[situation] += _word(situation) != _word(pair.situation)
        self.leads.setdefault((pair.situation, pair.command), Counter())[situation] += 1

    def promise(self, pair: Pair) -> float:
        """Returns how many pairs that were never reached this command may lead to, now or in a few steps."""
        now = self.goal, len(self.pairs), self._steps // AGAIN
        if self._weighed != now:
            self._weighed = now
            self._weigh()
        return self._promises.get((pair.situation, pair.command), 0.0)

    def _weigh(self) -> None:
        self._values, self._promises = {}, {}
        if not self.wanted:
            return
        for _ in range(AHEAD):
            self._promises = {way: self._promised(way[0], led) for way, led in self.leads.items()}
            self._values = {}
            for (situation, _), promise in self._promises.items():
                self._values[situation] = max(self._values.get(situation, 0.0), promise)

    def _promised(self, situation: str, led: Counter[str]) -> float:
        worth = sum(
            times * (self._near(situation, after) + FURTHER * self._values.get(after, 0.0))
            for after, times in led.items()
        )
        return worth / led.total()

    def _near(self, before: str, after: str) -> float:
        """Returns how many missing pairs have the new word of the situation after; less, the oftener it came."""
        word = _word(after)
        return 0.0 if word == _word(before) else self.wanted[word] / (1 + self._arrived[after] / OFTEN)

    @property
    def wanted(self) -> Counter[str]:
        """How many pairs were never reached, by each word of their situation.

        Asked for every command that may be drawn, and counted only when a pair was new.
        """
        goal, known, wanted = self._wanted
        if goal is not self.goal or known != len(self.pairs):
            missing = self.goal - self.pairs.keys()
            wanted = Counter(word for pair in missing for word in set(pair.situation.split()))
            self._wanted = self.goal, len(self.pairs), wanted
        return wanted

    def visit(self, pair: Pair, previous: str) -> None:
        self.pairs[pair] += 1
        self.triples[pair, previous] += 1

    def visits(self, pair: Pair, previous: str) -> tuple[int, int]:
        """Returns how often the pair and the triple were visited; what is least comes first."""
        return self.pairs[pair], self.triples[pair, previous]

    @property
    def reached(self) -> frozenset[Pair]:
        return self.goal & self.pairs.keys()

    @property
    def never(self) -> list[Pair]:
        return sorted(self.goal - self.pairs.keys())

    @property
    def beyond(self) -> list[Pair]:
        """Pairs that were reached though the model does not list them: its goal is too small."""
        return sorted(self.pairs.keys() - self.goal)

    @property
    def complete(self) -> bool:
        return self.goal <= self.pairs.keys()

    @property
    def share(self) -> float:
        return len(self.reached) / len(self.goal) if self.goal else 1.0


def _word(situation: str) -> str:
    return situation.partition(" ")[0]
