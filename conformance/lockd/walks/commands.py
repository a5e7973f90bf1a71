"""The commands that may be drawn, and when each makes sense.

`who` is a peer that the walk plays. Terms are named as a client knows them: `current` is the last one that the node
showed or granted, `below` the one before it, `above` one that is higher than all that were ever named.
"""

from collections.abc import Collection, Iterator

from holdfast.check.walk.vocabulary import Command, Step
from holdfast.conformance.lockd.walks.state import (
    APPLIED,
    BACKENDS,
    BEFORE,
    DECIDED,
    ENDPOINTS,
    FAR,
    GONE,
    ISLAND,
    PEERS,
    PROBE,
    RM,
    SPIES,
    STRANGER,
    WRITES,
    Member,
    State,
)

# What may be done to the process: it is killed, or told to stop, and started again.
CRASH, STOP = "crash", "stop"
LEASE_CALLS = ("acquire", "renew", "release")
TERMS = ("below", "current", "above")
STATES = ("commit", "rollback")
SERVER_ROUTES = ("announce", "leave", "register", "unregister")
# Calls that lack what they need, each by what is wrong with it, and the row that has it refused.
MALFORMED = {
    "announce without an endpoint": "TC-MEMBER-01",
    "announce of what is no URL": "TC-MEMBER-02",
    "announce with a user": "TC-MEMBER-02",
    "announce with a query": "TC-MEMBER-02",
    "announce that is no object": "TC-DATA-04",
    "announce of a number": "TC-DATA-04",
    "acquire with a text as term": "TC-DATA-04",
    "register without an endpoint": "TC-RM-03",
    "register without a backend": "TC-RM-03",
    "unregister without an endpoint": "TC-RM-03",
}


def all_commands(state: State, upsets: Collection[str] = ()) -> Iterator[Command]:
    """Yields what may be drawn; `upsets` is what may be done to the process."""
    yield from _of_members()
    yield from _of_peers(state)
    yield from _of_leases()
    yield from _of_the_registry()
    yield from _of_transactions()
    yield from (Command.of(name) for name in ("exit", "return"))
    yield from (Command.of(name) for name in upsets)
    yield from (Command.of("intrude", route=route) for route in SERVER_ROUTES)
    yield from (Command.of("malformed", call=call) for call in MALFORMED)


def all_openings() -> list[list[Command]]:
    """Returns beginnings with several members and entries, and with another leader, elected or only reported."""
    first, second = SPIES
    members = [Command.of("announce", who=who) for who in SPIES]
    entries = [Command.of("register", backend=backend, endpoint=at) for backend in BACKENDS for at in ENDPOINTS]
    elected = [Command.of("acquire", who=second, term="above"), Command.of("renew", who=second, term="current")]
    elsewhere = [Command.of("depose", who=first), *elected]
    decided = [Command.of("register", backend=ISLAND, endpoint=RM)]
    decided += [Command.of("decide", txn=txn, **{"as": STATES[0]}) for txn in (DECIDED[0], FAR)]
    deposing = [Command.of("votes", who=first, on=False), Command.of("announce", who=first)]
    friendly = Command.of("votes", who=first, on=True)
    reported = [Command.of("depose", who=first), Command.of("report", who=first), friendly]
    led = [elsewhere, [*elsewhere, friendly], [*decided, *elsewhere], reported]
    return [members, [*members, *entries[:2]], deposing, *led]


def _of_members() -> Iterator[Command]:
    for who in PEERS:
        yield Command.of("announce", who=who)
        yield Command.of("leave", who=who)
        yield Command.of("leave", who=who, marked=True)
    for who in SPIES:
        yield Command.of("depose", who=who)
    yield Command.of("announce", who=STRANGER, at=SPIES[0])
    yield Command.of("leave", who=STRANGER, naming=SPIES[0])


def _of_peers(state: State) -> Iterator[Command]:
    for who in SPIES:
        yield Command.of("votes", who=who, on=who in state.refusing)
        yield Command.of("report", who=who)
        for how in (WRITES, PROBE, GONE, ""):
            yield Command.of("trouble", who=who, how=how)


def _of_leases() -> Iterator[Command]:
    for who in SPIES:
        for name in LEASE_CALLS:
            for term in TERMS:
                yield Command.of(name, who=who, term=term)
        for name in ("acquire", "renew"):
            yield Command.of(name, who=who, term="above" if name == "acquire" else "current", short=True)


def _of_the_registry() -> Iterator[Command]:
    for name in ("register", "unregister"):
        for backend in BACKENDS:
            for endpoint in ENDPOINTS:
                yield Command.of(name, backend=backend, endpoint=endpoint)
                yield Command.of(name, backend=backend, endpoint=endpoint, replica=True)


def _of_transactions() -> Iterator[Command]:
    for way in STATES:
        yield from (Command.of("decide", txn=txn, **{"as": way}) for txn in DECIDED)
        for txn in APPLIED:
            yield from (Command.of("apply", txn=txn, term=term, **{"as": way}) for term in ("", *TERMS))
    yield from (Command.of("replay", txn=txn) for txn in DECIDED)


def all_races() -> Iterator[Step]:
    """Yields two candidates for one term, two decisions of one transaction, and changes of two backends."""
    first, second = SPIES
    yield Command.of("acquire", who=first, term="above"), Command.of("acquire", who=second, term="above")
    for txn in DECIDED:
        yield Command.of("decide", txn=txn, **{"as": "commit"}), Command.of("decide", txn=txn, **{"as": "rollback"})
    one, other = ({"backend": backend, "endpoint": ENDPOINTS[0]} for backend in BACKENDS)
    yield Command.of("register", **one), Command.of("unregister", **other)


def _with_a_refusing(state: State, who: str) -> State:
    return state.with_refusing(state.refusing | {who}).with_member(who, Member(who, BEFORE))


def _changes_a_peer(state: State, command: Command) -> bool:
    who = command.get("who")
    if command.name == "votes":
        return command.flag("on") == (who in state.refusing)
    if command.name == "trouble":
        return command.get("how") != state.trouble(who) and (state.report is None or state.report.who != who)
    # What a leader makes of a peer that says it leads is open.
    return state.lead is None and state.report is None and not state.trouble(who) and who in state.others


def ready(state: State, command: Command) -> bool:
    """Whether the command makes sense in this state, and the document says what comes of it."""
    sense = True
    match command.name:
        case "acquire":
            sense = state.here or (state.outside and command.get("term") == "above")
        case "renew" | "release" | "apply":
            sense = state.here
        case "decide":
            open_ = command.get("txn") == FAR and state.lead is not None and not state.reaches_rm
            sense = not state.adrift and not open_
        case "replay":
            sense = not state.adrift
        case "depose":
            sense = state.lead is not None and not _with_a_refusing(state, command.get("who")).quorum
        case "votes" | "trouble" | "report":
            sense = _changes_a_peer(state, command)
        case "exit":
            # A member that can't be told holds the leave up for a whole membership lease, in which others end.
            sense = state.here and not any(state.trouble(each) == GONE for each in state.others)
        case "return":
            sense = not state.here
        case "crash" | "stop":
            # What it makes of a peer that says it leads, before it has looked at its own list, is open.
            sense = state.report is None
    return sense
