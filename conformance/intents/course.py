"""The states that a session shows one after the other, as polls see them."""

from collections.abc import Sequence

from holdfast.check.finding import demand
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.wire import Answer

# How far each state is on the way to a session that runs; NEW has two names.
_STEPS = {"NEW": 0, "IDLE": 0, "STARTING": 1, "PRIMING": 2, "READY": 3}
FORWARD = "NEW or IDLE, STARTING, PRIMING, READY, in this order, none twice"


def forward(states: Sequence[str]) -> bool:
    """Whether these states only come nearer to a session that runs."""
    steps = [_STEPS.get(state, -1) for state in states]
    return -1 not in steps and steps == sorted(set(steps))


class Course:
    """What polls of one session have shown so far: each state once for as long as it lasted."""

    def __init__(self, intents: Intents, session: Session) -> None:
        self._intents = intents
        self._session = session
        self.states: list[str] = []

    async def look(self) -> Answer:
        """Polls once, notes the state and returns the answer."""
        seen = await self._intents.poll(self._session)
        demand(seen.state, "an answer with the state", seen.describe(), f"poll of {self._session.id}")
        if self.states[-1:] != [seen.state]:
            self.states.append(seen.state)
        return seen

    async def end(self) -> Answer | None:
        """Polls once and returns the answer if the session has ended."""
        seen = await self.look()
        return seen if seen.terminal else None

    def went_forward(self, why: str) -> None:
        demand(forward(self.states), FORWARD, ", ".join(self.states), why)

    def never_ran(self, why: str) -> None:
        """Judges that no poll has shown the session running."""
        ran = self._intents.running_states.intersection(self.states)
        demand(not ran, "no state of a running session", ", ".join(self.states), why)
