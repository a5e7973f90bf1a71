"""Commands as sentences of a story."""

from collections.abc import Callable

from holdfast.check.walk.vocabulary import Command

_PACES = {
    "": "start as usual",
    "slow": "start slowly",
    "long": "take longer to start than a lease lives",
    "fails": "fail to start",
    "brief": "end by themselves",
}


def describe(command: Command) -> str:
    key, node = _key(command), command.get("node")
    through = f" through {node}" if node else ""
    worker = command.get("worker")
    said: dict[str, Callable[[], str]] = {
        "start": lambda: f"start {key}{_with(command)}{through}",
        "stop": lambda: f"stop {_which(command)}{key}{through}",
        "refused": lambda: f"{command.get('by')} tries to {command.get('what')} {key}{through}",
        "malformed": lambda: f"start {key} with {command.get('call')}{_by(command)}{through}",
        "forwarded": lambda: f"a client {command.get('client')} tries to start {key}{through}",
        "lost": lambda: f"start {key} while nothing can be published{through}",
        "ask": lambda: f"poll a session that never was{through}",
        "pace": lambda: f"pipelines of {command.get('target')} {_PACES[command.get('how')]} from now on",
        "redeliver": lambda: f"the start event of {_which(command)}{key} comes again",
        "seize": lambda: f"somebody else takes {_lease(command)}",
        "lose": lambda: f"{_lease(command)} is deleted",
        "yield": lambda: "somebody else gives all leases back",
        "kill": lambda: f"{worker} is killed",
        "term": lambda: f"{worker} is told to stop",
        "stand": lambda: f"{worker} stands still",
        "resume": lambda: f"{worker} goes on",
        "begin": lambda: f"{worker} is started",
        "restart": lambda: f"{node} is killed and started again",
        "flip": lambda: "all APIs are started again in the other phase",
        "rotate": lambda: "all APIs get another secret, with the old one as the previous one",
        "forget": lambda: "all APIs get another secret and forget the old one",
        "turn back": lambda: "all APIs get the previous secret back, with the present one as the previous one",
        "polls": lambda: "poll the sessions",
        "stored": lambda: "look into Redis",
        "runs": lambda: "count the pipelines",
        "logged": lambda: "look into the logs of the workers",
    }
    return said[command.name]()


def _key(command: Command) -> str:
    at = command.get("at")
    return " ".join([command.get("target"), command.get("profile"), *([f"at {at}"] if at else [])])


def _with(command: Command) -> str:
    return f" with {command.get('with')}" if command.get("with") else ""


def _by(command: Command) -> str:
    return f", as {command.get('by')}" if command.get("by") else ""


def _which(command: Command) -> str:
    return {"previous": "the session before the last of ", "unknown": "a session that never was, not "}.get(
        command.get("which"), "the session of "
    )


def _lease(command: Command) -> str:
    lease, target = command.get("lease"), command.get("target")
    return "a free tuner slot" if lease == "slot" else f"the {lease} lease of {target}"
