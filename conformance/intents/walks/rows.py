"""Which rows of the catalogue state a demand, by the situation in which it is made: the most particular ones."""

from holdfast.check.walk.vocabulary import Command
from holdfast.conformance.intents.walks.state import (
    BUSY,
    ENDED,
    EXPIRED,
    FAILED,
    GONE,
    NEW,
    NO_TUNER,
    READY,
    SHUT,
    STARTING,
    STOPPED,
    Session,
    State,
)

Rows = tuple[str, ...]
# What a start is called that is sent at the same instant as another one.
TOGETHER = "together"
_REFUSED = ("refused", "malformed", "forwarded")
_LEFTOVERS: dict[str, Rows] = {
    "start": ("IN-IDEM-02", "IN-HERD-02"),
    "refused": ("IN-SIDE-01",),
    "malformed": ("IN-VALID-01",),
    "forwarded": ("IN-LAN-01",),
    "lost": ("IN-QUEUE-07",),
}
_RELEASED = {
    STOPPED: "IN-RUN-06",
    NO_TUNER: "IN-TUNER-03",
    FAILED: "IN-RUN-03",
    EXPIRED: "IN-RUN-05",
    GONE: "IN-KILL-06",
    SHUT: "IN-RUN-07",
}


def of_conflict(state: State, command: Command, target: str, profile: str) -> Rows:
    """Why the API refuses a start of a channel in phase 1."""
    holder = state.holder(target)
    if holder is not None and holder.dead:
        return ("IN-KILL-03",)
    if holder is not None and not holder.begun and not state.working:
        return ("IN-PHASE-04", "IN-PHASE-01")
    same = holder is not None and holder.key.profile == profile
    return ("IN-PHASE-02",) if same or command.flag(TOGETHER) else ("IN-PHASE-01",)


def of_replay(state: State, command: Command, found: Session) -> Rows:
    """Why a start is answered with a session that is there already."""
    way = command.get("with")
    if found.secret != state.secrets[0]:
        return ("IN-KEY-06",)
    if way:
        return ("IN-KEY-02",) if way in ("an offset", "blanks") else ("IN-IDEM-03",)
    if not found.key.live:
        return ("IN-KEY-03", "IN-IDEM-01")
    if command.flag(TOGETHER):
        return ("IN-HERD-01",)
    return ("IN-IDEM-04",) if found.aged else ("IN-IDEM-01", "IN-HERD-04")


def of_new(state: State, before: Session | None, target: str) -> Rows:
    """Why a start makes a new session; `before` is the last one of its key."""
    if before is not None and before.live:
        return ("IN-KILL-05",) if before.dead else ("IN-KEY-04",)
    if before is not None:
        return ("IN-PHASE-05", "IN-IDEM-05") if state.phase == 1 and before.key.live else ("IN-IDEM-05",)
    return ("IN-BUSY-01",) if state.holder(target) else ("IN-QUEUE-05",)


def of_verdict(state: State, session: Session, command: Command) -> Rows:
    """Why a worker makes this of a session, in the state before."""
    if session.mode == NEW:
        return ("IN-QUEUE-01", "IN-QUEUE-08")
    if session.mode in (STARTING, READY):
        return _why_it_runs(state, session, command)
    orphaned = any(each.dead and each.holds for each in state.living)
    if session.why in (BUSY, NO_TUNER) and orphaned:
        return ("IN-KILL-04",)
    if session.why == BUSY:
        return ("IN-BUSY-06",) if command.flag(TOGETHER) else ("IN-BUSY-02", "IN-DEDUP-02")
    return {NO_TUNER: ("IN-TUNER-02",), FAILED: ("IN-RUN-03",)}.get(session.why, ("IN-RUN-08",))


def _why_it_runs(state: State, session: Session, command: Command) -> Rows:
    if not session.key.live:
        return ("IN-TUNER-04",)
    if command.name == "begin":
        return ("IN-KILL-07",)
    if state.phase == 1:
        return ("IN-PHASE-03",)
    same = [each for each in state.living if each.holds and each.key.profile == session.key.profile]
    return ("IN-BUSY-07", "IN-RUN-01") if [each for each in same if each.id != session.id] else ("IN-RUN-01",)


def of_poll(state: State, session: Session, after: str) -> Rows:
    """Why a session shows what it does."""
    if session.mode == ENDED:
        swept = session.why == GONE and session.said == ("", "")
        return ("IN-KILL-05",) if swept else ("IN-BUSY-05", "IN-QUEUE-01")
    if session.mode == NEW:
        return ("IN-QUEUE-08", "IN-QUEUE-01")
    if after in ("restart", "rotate", "forget", "turn back"):
        return ("IN-KILL-09",)
    if after == "flip":
        return ("IN-PHASE-06",)
    if session.mode == READY and state.attended(session):
        return ("IN-RUN-04", "IN-BUSY-02") if session.aged else ("IN-RUN-01", "IN-BUSY-02")
    return ("IN-KILL-01",) if session.dead else ("IN-RUN-01",)


def of_lease(state: State, holder: Session, after: str) -> Rows:
    """Why a channel is held by this session."""
    if holder.mode == NEW:
        return ("IN-PHASE-01",)
    if not state.attended(holder):
        return ("IN-KILL-02",)
    if after in ("restart", "flip"):
        return ("IN-KILL-09",) if after == "restart" else ("IN-PHASE-06",)
    return ("IN-RUN-04",) if holder.aged else ("IN-DEDUP-01", "IN-BUSY-04")


def of_slot(state: State, holder: Session, after: str) -> Rows:
    """Why a session has one slot."""
    if not state.attended(holder):
        return ("IN-KILL-02",)
    if after == "redeliver":
        return ("IN-DEDUP-03",)
    return ("IN-RUN-04",) if holder.aged else ("IN-TUNER-01", "IN-RUN-02")


def of_no_lease(state: State, channel: str, after: str) -> Rows:
    """Why a channel is held by nobody: by how its last session has ended, or by what was just refused."""
    if state.phase == 1 and after in _REFUSED:
        return ("IN-SIDE-03",)
    if state.phase == 1 and after == "lost":
        return ("IN-PHASE-08",)
    last = next((each for each in reversed(state.sessions) if each.key.target == channel), None)
    return (_RELEASED.get(last.why, "IN-QUEUE-06"),) if last is not None else ("IN-QUEUE-06",)


def of_leftovers(after: str) -> Rows:
    """Why there is nothing that nobody asked for, by the kind of step."""
    return _LEFTOVERS.get(after, ("IN-IDEM-02",))
