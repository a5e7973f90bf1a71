"""Classes of states, as coverage counts them: what a command is about, in a few words."""

from holdfast.check.walk.vocabulary import Command
from holdfast.conformance.admission.walks.state import NEW, NOWHERE, OPEN, OWNERS, State

NAMES = ("drain", "maintain", "suspend")


def kind(command: Command) -> str:
    """Returns the command with the arguments that make it another one."""
    words = [command.name]
    words += ["with old build"] if command.get("build") else []
    words += [f"with {command.get('token')} token"] if command.get("token") else []
    words += [f"with {command.get('replace')} offer".replace("offer offer", "offer")] if command.get("replace") else []
    words += ["as a stranger"] if command.get("by") else []
    words += [NOWHERE] if command.get("where") == NOWHERE else []
    words += [command.get("which")] if command.get("which") == "previous" else []
    words += [command.get("call")] if command.get("call") else []
    words += ["on" if command.flag("on") else "off"] if command.name in NAMES else []
    return " ".join(words)


def situation(state: State, command: Command) -> str:
    who, where = command.get("who"), command.get("where")
    if command.name in ("drain", "maintain", "resize"):
        return _room(state, where)
    if command.name in ("kill", "restart", "pause"):
        return "a socket there" if any(each.mode == OPEN for _, each in state.sessions) else "no socket"
    if command.name == "lock":
        return "any"
    if command.name == "malformed":
        return "locked" if state.locked(OWNERS[who]) is not None else person(state, who)
    return _attempt(state, command) if command.name == "connect" else person(state, who)


def _attempt(state: State, command: Command) -> str:
    who, where = command.get("who"), command.get("where")
    if state.locked(command.get("by") or OWNERS[who]) is not None:
        return "locked"
    if who in state.suspended:
        return "suspended"
    if command.get("by") or command.get("build") or where == NOWHERE:
        return person(state, who)
    return _in_room(state, command)


def _in_room(state: State, command: Command) -> str:
    who, where = command.get("who"), command.get("where")
    session, room = state.session(who), state.room(where)
    mode = "closed" if room.closed else "draining" if room.draining else ""
    if command.get("token") not in ("", "current") or command.get("replace") not in ("", "offer"):
        return person(state, who)  # what is void is refused, wherever
    if session is not None:
        place = "here" if session.where == where else "elsewhere"
        return " ".join(filter(None, [person(state, who), place, mode if place == "here" else ""]))
    if command.get("token"):
        return person(state, who)
    if who in room.line:
        return " ".join(filter(None, ["waiting here", mode]))
    if state.waits_at(who):
        return "waiting elsewhere"
    free = "free" if state.free(where) and not room.line else "full"
    return f"outside {mode or free}"


def person(state: State, who: str) -> str:
    session = state.session(who)
    if session is None:
        return "waiting" if state.waits_at(who) else "outside"
    if session.mode == NEW and session.shown:
        return "promoted"
    return session.mode


def _room(state: State, where: str) -> str:
    room = state.room(where)
    modes = [name for name, on in (("closed", room.closed), ("draining", room.draining)) if on]
    socket = any(session.where == where and session.mode == OPEN for _, session in state.sessions)
    mode = " and ".join(modes) or ("free" if state.free(where) and not room.line else "full")
    return f"{mode} with a socket" if socket else mode
