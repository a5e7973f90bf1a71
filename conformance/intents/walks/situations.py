"""Classes of states, as coverage counts them: what a command is about, in a few words."""

from holdfast.check.walk.vocabulary import Command
from holdfast.conformance.intents.walks.commands import (
    BEGIN,
    FORWARDED,
    ILL,
    KILL,
    REFUSED,
    RESUME,
    STAND,
    START,
    STOP,
    TERM,
    UNKNOWN,
    key_of,
)
from holdfast.conformance.intents.walks.spans import MAIN_OFFSETS, Spans
from holdfast.conformance.intents.walks.state import (
    ENDED,
    NEW,
    STARTING,
    Key,
    Session,
    State,
)
from holdfast.conformance.shared.walks import Span

# At no particular time: nothing of what has ended is held any more.
LATER = Span(float("inf"), float("inf"))


def kind(command: Command) -> str:
    """Returns the command with the arguments that make it another one."""
    name = command.name
    words = [name]
    words += [command.get("what")] if name == REFUSED else []
    words += [f"at {command.get('at')}"] if name == START and command.get("at") else []
    words += [f"with {command.get('with')}"] if command.get("with") else []
    words += [command.get("which")] if name in (STOP, "redeliver") else []
    words += [command.get("call")] if command.get("call") else []
    words += [f"by {command.get('by')}"] if command.get("by") else []
    words += [command.get("client")] if name == FORWARDED else []
    words += [command.get("how") or "usual"] if name == "pace" else []
    words += [command.get("lease")] if command.get("lease") else []
    words += [command.get("worker")] if command.get("worker") else []
    return " ".join(words)


def situation(state: State, command: Command, spans: Spans) -> str:
    name = command.name
    if command.get("which") == UNKNOWN:
        return "any"
    if name in (START, "lost"):
        return _start(state, command, key_of(command, spans))
    if name in (STOP, "redeliver"):
        return own(state, key_of(command, spans))
    if name in (REFUSED, ILL, FORWARDED):
        return _broadly(own(state, key_of(command, spans)))
    return _operated(state, command)


def _operated(state: State, command: Command) -> str:
    """The class of a state for what is done to leases, pipelines, workers and APIs."""
    if command.name in ("seize", "lose"):
        return _leases(state, command)
    if command.name == "pace":
        return state.pace(command.get("target")) or "usual"
    return _workers(state) if command.name in (KILL, TERM, STAND, RESUME, BEGIN) else _load(state)


def own(state: State, key: Key) -> str:
    """Returns what has become of the youngest session of a key."""
    session = state.last(key)
    return "fresh" if session is None else _of(state, session)


def _of(state: State, session: Session) -> str:
    if session.mode == ENDED:
        return "ended"
    if session.stopping:
        return "stopping"
    if session.mode == NEW:
        return "new"
    if session.dead:
        return "lapsed" if session.lapsed else "orphan"
    if not state.attended(session):
        return "frozen"
    return "starting" if session.mode == STARTING else "aged" if session.aged else "running"


def _start(state: State, command: Command, key: Key) -> str:
    """What has become of the key; where that leads to a new session, whether there is room for it."""
    word = own(state, key)
    if command.get("with"):
        return _broadly(word)
    if command.get("at") not in ("", MAIN_OFFSETS[0]):
        word = _broadly(word)
    if word not in ("fresh", "ended"):
        return word
    if not key.live:
        return word if state.working else f"{word} unattended"
    room = "held" if state.taken(key.target, LATER) else "full" if state.full(LATER) else "free"
    return f"{word} {room}" if state.working else f"{word} {room} unattended"


def _broadly(word: str) -> str:
    return word if word in ("fresh", "ended") else "live"


def _leases(state: State, command: Command) -> str:
    if command.get("lease") == "slot":
        return _load(state)
    holder = state.holder(command.get("target"))
    return "free" if holder is None else _of(state, holder) if holder.begun else "new"


def _workers(state: State) -> str:
    """How the workers are, and whether anything of theirs is under way."""
    how = " ".join(how for _, how in state.workers)
    return f"{how} {_load(state)}"


def _load(state: State) -> str:
    if not state.living:
        return "idle"
    return "queued" if any(each.mode == NEW for each in state.living) else "busy"
