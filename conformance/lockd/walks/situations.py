"""Classes of states, as coverage counts them: what a command is about, in a few words."""

from holdfast.check.walk.vocabulary import Command
from holdfast.conformance.lockd.walks.commands import LEASE_CALLS
from holdfast.conformance.lockd.walks.state import FAR, GONE, WRITES, State

# Refused whatever the state is.
_ANYWHERE = ("intrude", "malformed")
_FLAGS = {"marked": "marked", "replica": "as replica", "short": "for a short time"}


def kind(command: Command) -> str:
    """Returns the command with the arguments that make it another one."""
    words = [command.name]
    words += [said for flag, said in _FLAGS.items() if command.flag(flag)]
    words += ["for an RM"] if command.name == "decide" and command.get("txn") == FAR else []
    words += ["elsewhere"] if command.get("at") else []
    words += ["naming another"] if command.get("naming") else []
    words += ["on" if command.flag("on") else "off"] if command.name == "votes" else []
    words += [command.get("how") or "over"] if command.name == "trouble" else []
    words += [command.get("term") or "without term"] if command.name in (*LEASE_CALLS, "apply") else []
    words += [command.get("route") or command.get("call")] if command.name in _ANYWHERE else []
    return " ".join(words)


def situation(state: State, command: Command) -> str:
    name, who = command.name, command.get("who")
    if name in LEASE_CALLS:
        return _slot(state, who)
    if name in ("announce", "leave", "trouble"):
        return _listing(state, command)
    if name in ("register", "unregister"):
        return _pair(state, command)
    if name in ("decide", "apply", "replay"):
        return f"{leadership(state)} {_record(state, command)}"
    if name == "exit":
        mood = " shaky" if state.lead is not None and state.shaky else ""
        return f"{leadership(state)}{mood} {'with peers' if state.others else 'alone'}"
    return "any" if name in _ANYWHERE else leadership(state)


def leadership(state: State) -> str:
    if not state.here:
        return "outside" if state.members else "adrift"
    if state.lead is not None:
        return "leading"
    if state.slot is None or not state.slot.led:
        return "leaderless"
    return "cut-off" if state.trouble(state.slot.holder) == GONE else "following"


def _slot(state: State, who: str) -> str:
    """The leadership, and whose the slot is: coverage learns from the first word where a command leads."""
    if not state.here or state.lead is not None:
        return leadership(state)
    whose = "free" if state.slot is None else "mine" if state.slot.holder == who else "of another"
    return f"{leadership(state)} {whose}"


def _listing(state: State, command: Command) -> str:
    who = command.get("naming") or command.get("who")
    member = state.member(who)
    word = "unlisted" if member is None else "listed"
    if command.name == "trouble":
        leads = state.here and state.lead is None and state.slot is not None and state.slot.led
        leads = leads and state.slot is not None and state.slot.holder == who
        return f"{leadership(state) if leads else word} {state.trouble(who) or 'well'}"
    return word if member is None or member.at == who else "listed elsewhere"


def _pair(state: State, command: Command) -> str:
    there = (command.get("backend"), command.get("endpoint")) in state.registry
    troubles = {state.trouble(each) for each in state.others}
    if command.flag("replica") or not state.others:
        peers = "with peers" if state.others else "alone"
    elif troubles == {""}:
        peers = "all well"
    elif troubles == {"", WRITES}:
        # Who is asked before the one that refuses has something to undo.
        peers = "refused by the last" if state.trouble(state.others[-1]) else "refused by the first"
    else:
        peers = "refused" if troubles == {WRITES} else "unreachable" if GONE in troubles else "unprobed"
    return f"{'present' if there else 'absent'} {peers}"


def _record(state: State, command: Command) -> str:
    known = state.decision(command.get("txn"))
    if known is None:
        return "fresh"
    return "decided" if command.get("as") in ("", known.state) else "contradicted"
