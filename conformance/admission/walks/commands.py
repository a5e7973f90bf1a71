"""The commands that may be drawn, and when each makes sense.

`who` is a character, `where` an instance, `node` a node by its number. Tokens and offers are named as the client knows
them: `current` is the last one that it was told, `previous` the one before, `unknown` one that nobody was told.
"""

from collections.abc import Collection, Iterator

from holdfast.check.walk.vocabulary import Command, Step, Value
from holdfast.conformance.admission.walks.malformed import MALFORMED
from holdfast.conformance.admission.walks.state import NOWHERE, OPEN, OWNERS, PEOPLE, ROOMS, State

CONNECT = "connect"
# What may be done to a node.
KILL, PAUSE = "kill", "pause"
TOKENS = ("current", "previous", "unknown", "of sibling")
OFFERS = ("offer", "previous", "unknown", "of sibling")
CAPACITIES = (1, 2, 3)
# Offers for one character that a walk leaves open at a time.
MOST_OFFERS = 3
SIBLINGS = {"a": "b", "b": "a", "c": "d", "d": "c"}
# Whose credentials a stranger shows.
STRANGERS = {"u1": "u2", "u2": "u3", "u3": "u1"}


def all_commands(
    state: State, nodes: int, failures: int, *, upsets: Collection[str], cancels: bool
) -> Iterator[Command]:
    """Yields what may be drawn; a user is locked after `failures` of them. `upsets` is what may be done to nodes."""
    drawn = _all_commands(state, nodes, upsets=upsets, cancels=cancels)
    return (each for each in drawn if _spares_the_user(state, each, failures))


def _all_commands(state: State, nodes: int, *, upsets: Collection[str], cancels: bool) -> Iterator[Command]:
    for node in _nodes(state, nodes):
        for who in PEOPLE:
            yield from _attempts(who, node)
            yield from _of_a_session(who, node)
            yield from _of_a_place(state, who, node)
            yield Command.of("suspend", who=who, on=who not in state.suspended, node=node)
            if cancels:
                yield Command.of("cancel", who=who, node=node)
        yield from _of_rooms(state, node)
    for who in PEOPLE:
        yield from (Command.of(name, who=who) for name in ("drop", "close", "mute", "beat"))
        yield Command.of("lock", who=who, where=ROOMS[0])
    if upsets:
        yield from _of_nodes(state, nodes, upsets)


def _nodes(state: State, nodes: int) -> list[str]:
    return [name for number in range(nodes) if (name := f"n{number + 1}") not in state.down]


def _attempts(who: str, node: str) -> Iterator[Command]:
    stranger = STRANGERS[OWNERS[who]]
    for where in ROOMS:
        more: list[dict[str, Value]] = [{}, {"build": "old"}, {"by": stranger}, {"by": stranger, "token": "current"}]
        more += [{"token": token} for token in TOKENS]
        more += [{"replace": offer} for offer in OFFERS]
        more += [{"build": "old", "replace": "offer"}]
        yield from (Command.of(CONNECT, who=who, where=where, node=node, **each) for each in more)
    yield Command.of(CONNECT, who=who, where=NOWHERE, node=node)
    yield from (Command.of("malformed", who=who, where=ROOMS[0], call=call, node=node) for call in MALFORMED)


def _of_a_session(who: str, node: str) -> Iterator[Command]:
    for which in ("current", "previous"):
        yield Command.of("leave", who=who, which=which, node=node)
        yield Command.of("attach", who=who, which=which, node=node)
    yield Command.of("leave", who=who, which="current", node=node, by=STRANGERS[OWNERS[who]])


def _of_a_place(state: State, who: str, node: str) -> Iterator[Command]:
    where = state.waits_at(who) or ROOMS[0]
    yield Command.of("unqueue", who=who, where=where, node=node)
    yield Command.of("unqueue", who=who, where=where, node=node, by=STRANGERS[OWNERS[who]])


def _of_rooms(state: State, node: str) -> Iterator[Command]:
    for where, room in state.rooms:
        yield Command.of("drain", where=where, on=not room.draining, node=node)
        yield Command.of("maintain", where=where, on=not room.closed, node=node)
        for capacity in CAPACITIES:
            if capacity != room.capacity:
                yield Command.of("resize", where=where, capacity=capacity, node=node)


def _of_nodes(state: State, nodes: int, upsets: Collection[str]) -> Iterator[Command]:
    for number in range(nodes):
        node = f"n{number + 1}"
        if node in state.down:
            yield Command.of("restart", node=node)
        elif not state.down and nodes > 1:
            yield from (Command.of(each, node=node) for each in upsets)


def all_openings(nodes: int) -> list[list[Command]]:
    """Returns beginnings with full instances, lines and open sockets, through each node."""
    names = [f"n{number + 1}" for number in range(nodes)]

    def inside(who: str, where: str, node: str) -> list[Command]:
        attach = Command.of("attach", who=who, which="current", node=node)
        return [Command.of(CONNECT, who=who, where=where, node=node), attach]

    first, last = names[0], names[-1]
    lined = [Command.of(CONNECT, who=who, where=ROOMS[0], node=node) for who, node in (("b", last), ("c", first))]
    lined.append(Command.of(CONNECT, who="e", where=ROOMS[0], node=last))
    full = [*inside("a", ROOMS[0], first), *lined]
    open_ = [*inside("a", ROOMS[0], first), *inside("c", ROOMS[1], last), *inside("e", ROOMS[1], first)]
    again = Command.of(CONNECT, who="a", where=ROOMS[0], node=last)  # is refused with an offer
    return [full, open_, [*open_, again, Command.of("drop", who="a")], [*full, again, Command.of("mute", who="a")]]


def all_races(state: State, nodes: int) -> Iterator[Step]:
    """Yields a leave with somebody else's attempt for the slot, and two attempts of one character."""
    names = _nodes(state, nodes)
    first, last = names[0], names[-1]
    for leaver, session in state.sessions:
        for who in PEOPLE:
            if who != leaver and state.session(who) is None:
                connect = Command.of(CONNECT, who=who, where=session.where, node=last)
                yield Command.of("leave", who=leaver, which="current", node=first), connect
    for who in PEOPLE:
        for where in ROOMS:
            yield tuple(Command.of(CONNECT, who=who, where=where, node=node) for node in (first, last))


def ready(state: State, command: Command) -> bool:
    """Whether the command makes sense in this state, and the spec says what comes of it."""
    if command.get("node") in state.down and command.name != "restart":
        return False
    sense = True
    match command.name:
        case "connect":
            sense = _attempt_is_decided(state, command)
        case "lock":
            sense = state.locked(OWNERS[command.get("who")]) is None
        case "drop" | "close" | "mute" | "beat":
            session = state.session(command.get("who"))
            sense = session is not None and session.mode == OPEN
        case "kill" | "pause":
            sense = not state.down
        case "restart":
            sense = command.get("node") in state.down
    return sense


def _attempt_is_decided(state: State, command: Command) -> bool:
    who, where = command.get("who"), command.get("where")
    session, waits = state.session(who), state.waits_at(who)
    if command.get("replace"):
        # An offer without a session to replace: refusing it and taking it for a plain attempt both conform.
        return session is not None
    if session is not None and not session.id:
        return False  # promoted, and the client has not asked yet
    if command.get("token") or command.get("by") or command.get("build") or where == NOWHERE:
        return True
    if session is None and waits not in ("", where):
        # A second line: a target may move the entry, add one or refuse.
        room = state.room(where)
        return who in state.suspended or (state.free(where) and not room.line and not room.draining and not room.closed)
    return len([offer for offer in state.offers if offer.who == who]) < MOST_OFFERS


def _spares_the_user(state: State, command: Command, limit: int) -> bool:
    """Leaves the last failure to `lock`: a user who is locked by accident can do nothing for the rest of a walk."""
    if command.name not in (CONNECT, "malformed"):
        return True
    user = command.get("by") or OWNERS[command.get("who")]
    if state.locked(user) is not None:
        return True
    if command.name == "malformed":
        return len(state.failed(user)) < limit - 1
    where, who = command.get("where"), command.get("who")
    wrong = any(command.get(name) for name in ("build", "by", "token", "replace"))
    barred = who in state.suspended or state.session(who) is not None
    shut = where == NOWHERE or state.room(where).closed
    return not (wrong or barred or shut) or len(state.failed(user)) < limit - 1
