"""What a check leaves on a target that it does not have to itself: sessions and places, ended when the check ends."""

from collections.abc import Iterator

from holdfast.conformance.admission import wire
from holdfast.conformance.admission.identities import User
from holdfast.conformance.admission.wire import Answer, Request


class Footprint:
    """Sessions and places in line that the target has told us of. Exact counters of later checks start from there."""

    def __init__(self) -> None:
        self._sessions: dict[str, tuple[str, User]] = {}
        self._places: dict[str, tuple[str, User]] = {}

    def note(self, request: Request, user: User | None, answer: Answer) -> None:
        path = request.path.split("/")
        if user is None or len(path) < 4 or path[1] != "instances":
            return
        instance = path[2]
        if answer.session_id:
            self._sessions[answer.session_id] = (instance, user)
        elif answer.outcome == "queued" and isinstance(request.body, dict):
            self._places[str(request.body.get("characterId"))] = (instance, user)

    def farewells(self) -> Iterator[list[tuple[Request, User]]]:
        """The calls that end all of it, in two rounds: nobody may be left in line when slots become free."""
        yield [(wire.unqueue(instance, character), user) for character, (instance, user) in self._places.items()]
        yield [(wire.leave(instance, session), user) for session, (instance, user) in self._sessions.items()]
