"""What a run asks of its walks."""

from dataclasses import dataclass

from holdfast.check.walk.replay import Replay

# Steps of one walk: long enough to come to rare states, short enough to begin afresh before everything is uncertain.
STEPS = 60


@dataclass(frozen=True)
class Order:
    """`seconds` of walking, and `shrink` seconds more to make a finding short.

    `steps` are those of all walks together; without them, walks follow each other until the time is over. `goal` is
    the share of the pairs that has to be reached; with `until_covered` the walks end when all of them are.
    """

    seconds: float
    shrink: float
    steps: int | None = None
    until_covered: bool = False
    goal: float = 0.0
    replay: Replay | None = None

    @property
    def planned(self) -> float:
        return self.seconds + self.shrink
