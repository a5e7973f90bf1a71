"""How long a call waits for its answer: the full time, or one second once the target has proven silent.

All checks of one target share one `AnswerTimeout`. Until the first answer arrives, each call that ends without one is
counted. After `SILENT_CALLS` of them every further call waits `SILENT_TIMEOUT` at most, so that a run against a target
that never answers ends in about the time of a healthy run. The first answer restores the full timeouts for good.
"""

from dataclasses import dataclass

# Three calls with their full timeouts are enough to rule out a target that is only slow to start.
SILENT_CALLS = 3
SILENT_TIMEOUT = 1.0
# A call that was cancelled counts as unanswered after this many seconds. One cancelled sooner may just have been the
# last call of a check whose own deadline came.
UNANSWERED_AFTER = 5.0


@dataclass
class AnswerTimeout:
    """What is known of one target: whether it has ever answered, and how many calls got no answer."""

    answered: bool = False
    unanswered: int = 0

    @property
    def silent(self) -> bool:
        """Whether the target has proven silent."""
        return not self.answered and self.unanswered >= SILENT_CALLS

    def of(self, full: float) -> float:
        """Returns the seconds to wait for the next answer; `full` is what the call would wait by itself."""
        return min(full, SILENT_TIMEOUT) if self.silent else full
