"""What walks have reached, so that the next command can be one that was tried least.

A *pair* is a command in a class of states, through a node that did or did not deal with its subject before. A *triple*
is a pair with the command before it: what was missed in the field was seldom a command in a state, and often the same
command in a state that was reached another way. The model says which pairs can be reached; the number of triples
cannot be told beforehand, so those reached are counted.

Rare situations are reached in several steps. So coverage also learns where commands lead: from the word that begins a
situation to the word that begins the next one. A command that leads to where many pairs are still missing has promise.
"""

from collections import Counter
from dataclasses import dataclass, field

from holdfast.check.walk.vocabulary import Pair

Triple = tuple[Pair, str]


@dataclass
class Coverage:
    goal: frozenset[Pair] = frozenset()
    pairs: Counter[Pair] = field(default_factory=Counter)
    triples: Counter[Triple] = field(default_factory=Counter)
    # By the word before and the command: the words after.
    leads: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    # `wanted`, and the goal and number of pairs that it was counted for.
    _wanted: tuple[frozenset[Pair], int, Counter[str]] = field(default=(frozenset(), 0, Counter()), repr=False)

    def led(self, pair: Pair, situation: str) -> None:
        """Notes in which situation a command left what it is about."""
        self.leads.setdefault((_word(pair.situation), pair.command), Counter())[_word(situation)] += 1

    def promise(self, pair: Pair) -> int:
        """Returns how many pairs were never reached where this command has most often led."""
        led = self.leads.get((_word(pair.situation), pair.command))
        if led is None:
            return 0
        word = led.most_common(1)[0][0]
        return 0 if word == _word(pair.situation) else self.wanted[word]

    @property
    def wanted(self) -> Counter[str]:
        """How many pairs were never reached, by the first word of their situation.

        Asked for every command that may be drawn, and counted only when a pair was new.
        """
        goal, known, wanted = self._wanted
        if goal is not self.goal or known != len(self.pairs):
            wanted = Counter(_word(pair.situation) for pair in self.goal - self.pairs.keys())
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
