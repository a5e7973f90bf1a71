"""Commands as sentences of a story."""

from collections.abc import Callable

from holdfast.check.walk.vocabulary import Command


def describe(command: Command) -> str:
    who, where, node = command.get("who"), command.get("where"), command.get("node")
    through = f" through {node}" if node else ""
    said: dict[str, Callable[[], str]] = {
        "connect": lambda: f"{who} connects to {where}{_with(command)}{through}",
        "lock": lambda: f"{who} fails to connect to {where} until its user is locked",
        "malformed": lambda: f"{who} attempts to connect to {where} {command.get('call')}{through}",
        "leave": lambda: f"{_by(command)}{who} leaves its {_which(command)}session{through}",
        "attach": lambda: f"{who} attaches a socket to its {_which(command)}session{through}",
        "unqueue": lambda: f"{_by(command)}{who} leaves the line of {where}{through}",
        "cancel": lambda: f"{who} cancels its last offer{through}",
        "drop": lambda: f"{who} loses its socket",
        "close": lambda: f"{who} closes its socket",
        "mute": lambda: f"{who} says nothing any more",
        "beat": lambda: f"{who} sends a heartbeat",
        "drain": lambda: f"drain of {where} {'on' if command.flag('on') else 'off'}{through}",
        "maintain": lambda: f"maintenance of {where} {'on' if command.flag('on') else 'off'}{through}",
        "resize": lambda: f"capacity of {where} set to {command.number('capacity')}{through}",
        "suspend": lambda: f"{who} is {'suspended' if command.flag('on') else 'suspended no more'}",
        "kill": lambda: f"{node} is killed",
        "restart": lambda: f"{node} is started again",
        "pause": lambda: f"{node} stands still for a while",
        "poll": lambda: f"{who} polls {where}",
        "sockets": lambda: "look at the sockets",
        "events": lambda: "look into the log",
        "metrics": lambda: "look at the metrics of all nodes",
        "records": lambda: "look into Redis",
    }
    return said[command.name]()


def _with(command: Command) -> str:
    words = []
    words += [" with an old build"] if command.get("build") else []
    words += [f" with the {command.get('token')} token"] if command.get("token") else []
    words += [f" confirming the {command.get('replace')} offer"] if command.get("replace") else []
    words += [f" as {command.get('by')}"] if command.get("by") else []
    return "".join(words)


def _by(command: Command) -> str:
    return f"as {command.get('by')}, " if command.get("by") else ""


def _which(command: Command) -> str:
    return "previous " if command.get("which") == "previous" else ""
