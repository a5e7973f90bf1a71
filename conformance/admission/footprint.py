"""What a check leaves on a target that it shares with others: sessions and places, to be ended with the check."""

from collections.abc import Iterator

from holdfast.conformance.admission import wire
from holdfast.conformance.admission.identities import User
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request


class Footprint:
    """Sessions and places in line that the target has given to this check; later checks must not count them."""

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[str, User]] = {}
        self._places: dict[str, tuple[str, User]] = {}

    def note(self, request: Request, user: User | None, answer: Answer) -> None:
        """Remembers the session or place that an answer gives."""
        path = request.path.split("/")
        if user is None or len(path) < 4 or path[1] != "instances":
            return
        instance = path[2]
        if answer.session_id:
            self._sessions[answer.session_id] = (instance, user)
        elif answer.outcome == "queued" and isinstance(request.body, dict):
            self._places[str(request.body.get("characterId"))] = (instance, user)

    def endings(self) -> Iterator[list[tuple[Request, User]]]:
        """Yields the calls that end all of it, in two rounds: places first, or a freed slot would promote them."""
        yield [(wire.unqueue(instance, character), user) for character, (instance, user) in self._places.items()]
        yield [(wire.leave(instance, session), user) for session, (instance, user) in self._sessions.items()]
