"""How long to wait for an answer: in full, until a target has shown that it never gives one."""

from dataclasses import dataclass

# Three calls at full patience rule out a slow start; from then on a silent target costs a second a call, so that a
# hopeless run still ends in the time of a healthy one. The first answer gives the full patience back.
SILENCES = 3
SHORT = 1.0
# A call that was broken off after less than this may just have been the last of a check that took too long.
UNANSWERED = 5.0


@dataclass
class Patience:
    """What all checks of one target know together: whether it has ever answered."""

    answered: bool = False
    silences: int = 0

    def of(self, full: float) -> float:
        return full if self.answered or self.silences < SILENCES else min(full, SHORT)
