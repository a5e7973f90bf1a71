"""Commands as sentences of a story."""

from collections.abc import Callable

from holdfast.check.walk.vocabulary import Command

_TROUBLES = {
    "writes": "refuses registry writes",
    "probe": "fails the probe",
    "gone": "closes its port",
    "": "is well again",
}


def describe(command: Command) -> str:
    who, term, txn = command.get("who"), command.get("term"), command.get("txn")
    pair = f"{command.get('backend')} {command.get('endpoint')}"
    replica = " as a replica" if command.flag("replica") else ""
    said: dict[str, Callable[[], str]] = {
        "announce": lambda: f"{who} announces itself{_at(command)}",
        "depose": lambda: f"{who} announces itself and refuses votes, until the node has stepped down",
        "leave": lambda: f"{who} leaves{_leaving(command)}",
        "exit": lambda: "the node leaves its cluster",
        "return": lambda: "the node announces itself again",
        "crash": lambda: "the node is killed and started again",
        "stop": lambda: "the node is told to stop and started again",
        "votes": lambda: f"{who} {'grants' if command.flag('on') else 'refuses'} votes from now on",
        "trouble": lambda: f"{who} {_TROUBLES[command.get('how')]}",
        "report": lambda: f"{who} begins to say that it leads",
        "acquire": lambda: f"{who} asks for a vote at the term {term}{_short(command)}",
        "renew": lambda: f"{who} renews at the term {term}{_short(command)}",
        "release": lambda: f"{who} releases the term {term}",
        "register": lambda: f"register {pair}{replica}",
        "unregister": lambda: f"unregister {pair}{replica}",
        "decide": lambda: f"decide {command.get('as')} of {txn}",
        "apply": lambda: f"apply {command.get('as')} of {txn} {f'at the term {term}' if term else 'without a term'}",
        "replay": lambda: f"ask for the record of {txn}",
        "intrude": lambda: f"a client calls {command.get('route')}",
        "malformed": lambda: f"a malformed call: {command.get('call')}",
        "leader": lambda: "look at the leader",
        "members": lambda: "look at the member list",
        "registry": lambda: "look at the registry",
        "heard": lambda: "look at what the spies got",
    }
    return said[command.name]()


def _at(command: Command) -> str:
    return f" at the endpoint of {command.get('at')}" if command.get("at") else ""


def _short(command: Command) -> str:
    return " for a short time" if command.flag("short") else ""


def _leaving(command: Command) -> str:
    if naming := command.get("naming"):
        return f" and names {naming}"
    return " with the mark of a fan-out" if command.flag("marked") else ""
