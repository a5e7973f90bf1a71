"""The commands that may be drawn, and when each makes sense.

`target` is a channel or a recording, `profile` one of two, `at` an offset into a recording by the catalogue's name for
it, `node` an API by its number. Sessions are named as a client knows them: `current` is the last one that a start of
this key was answered with, `previous` the one before, `unknown` one that nobody was told.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from holdfast.check.walk.draw import WAIT
from holdfast.check.walk.vocabulary import Command, Step
from holdfast.conformance.intents.walks.clients import CLIENTS
from holdfast.conformance.intents.walks.malformed import MALFORMED, OF_RECORDINGS
from holdfast.conformance.intents.walks.spans import MAIN_OFFSETS, OFFSETS, Spans
from holdfast.conformance.intents.walks.state import (
    BOTH,
    BRIEF,
    CHANNELS,
    DOWN,
    FAILS,
    FIRST,
    LONG,
    NEW,
    PROFILES,
    RECORDINGS,
    SLOTS,
    SLOW,
    STANDBY,
    STILL,
    TARGETS,
    UP,
    USUAL,
    Key,
    State,
)

START, STOP, REFUSED, ILL, FORWARDED = "start", "stop", "refused", "malformed", "forwarded"
# What else may be said with a start without making it another one; the last two only with a recording or a channel.
WITH = (
    "another user",
    "a correlation id",
    "free parameters",
    "a key in the body",
    "a key in a header",
    "no type",
    "both profiles",
    "its mode",
    "a LAN client",
)
OF_CHANNELS, OF_RECORDING = ("an offset", "blanks"), ("a channel",)
# Fields that a target may refuse (IN-IDEM-03).
OPTIONAL = frozenset(
    {"a correlation id", "free parameters", "a key in the body", "both profiles", "its mode", *OF_RECORDING}
)
# Who posts an intent without being allowed to: by the status of the refusal.
NOBODIES = (
    "nobody",
    "a stranger",
    "an empty token",
    "half a token",
    "another scheme",
    "no scheme",
    "a token in the URL",
)
UNPRIVILEGED = ("a reader", "a near miss")
PACES = (SLOW, LONG, FAILS, BRIEF)
CURRENT, PREVIOUS, UNKNOWN = "current", "previous", "unknown"
# What may be done to leases, to workers and to APIs.
SEIZE, LOSE, YIELD = "seize", "lose", "yield"
KILL, TERM, STAND, RESUME, BEGIN = "kill", "term", "stand", "resume", "begin"
API, FLIP, SECRETS = "restart", "flip", ("rotate", "forget", "turn back")
# Sessions that nobody has picked up, what comes of which is tried in every order; sessions of which nobody knows which
# of two workers runs them; and recordings, where workers may go away: nothing tells from outside who runs one.
MOST_NEW, MOST_DOUBTFUL, MOST_RECORDINGS = 3, 3, 4


@dataclass(frozen=True)
class Sight:
    """What this target lets a walk see and do."""

    nodes: int = 1
    # Redis with its leases, records and bus; pipelines that can be steered and counted.
    store: bool = False
    pipelines: bool = False
    # Logs of the workers.
    log: bool = False
    # Whether recordings are played by intents, and whether X-Forwarded-For from here counts.
    recordings: bool = True
    proxied: bool = False
    # Tokens of the descriptor beside the first two.
    users: int = 1
    near_miss: bool = False
    # What may be done to processes, and whether there is a second worker.
    upsets: tuple[str, ...] = ()
    standby: bool = False

    def names(self) -> list[str]:
        return [f"n{number + 1}" for number in range(self.nodes)]

    @property
    def targets(self) -> tuple[str, ...]:
        return TARGETS if self.recordings else CHANNELS

    def ways(self, target: str) -> tuple[str, ...]:
        own = OF_CHANNELS if target in CHANNELS else OF_RECORDING
        gone = {"another user"} if self.users < 2 else set[str]()
        gone |= set() if self.proxied else {"a LAN client"}
        return tuple(each for each in (*WITH, *own) if each not in gone)


def key_of(command: Command, spans: Spans) -> Key:
    return Key(command.get("target"), command.get("profile"), spans.bucket(command.get("at")))


def all_commands(state: State, sight: Sight) -> Iterator[Command]:
    yield from _whatever_the_state(sight)
    if sight.pipelines:
        yield from _of_pipelines(state, sight)
    if sight.store and (state.foreign or state.slots):
        yield Command.of(YIELD)


@lru_cache
def _whatever_the_state(sight: Sight) -> tuple[Command, ...]:
    """Returns the commands that may be drawn in every state; made once, since each draw asks for them."""
    found: list[Command] = []
    for target in sight.targets:
        for key in _keys(target):
            found += _of_a_key(key, sight)
        found += _refusals(_keys(target)[0], sight)
    found.append(Command.of(STOP, **_keys(CHANNELS[0])[0], which=UNKNOWN, node="n1"))
    found.append(Command.of("ask", which=UNKNOWN, node="n1"))
    found += _of_leases() if sight.store else []
    return (*found, *_of_workers(sight), *_of_apis(sight))


def _keys(target: str) -> list[dict[str, str]]:
    """Returns the arguments that name each key of a target; of the second recording only what tells it apart."""
    if target in CHANNELS:
        return [{"target": target, "profile": profile} for profile in PROFILES]
    offsets = OFFSETS if target == RECORDINGS[0] else MAIN_OFFSETS
    return [{"target": target, "profile": PROFILES[0], "at": at} for at in offsets]


def _of_a_key(key: dict[str, str], sight: Sight) -> Iterator[Command]:
    last = sight.names()[-1]
    for node in sight.names():
        yield Command.of(START, **key, node=node)
        yield from (Command.of(STOP, **key, which=which, node=node) for which in (CURRENT, PREVIOUS))
    if key.get("at", OFFSETS[0]) == OFFSETS[0]:
        yield from (Command.of(START, **key, node=last, **{"with": way}) for way in sight.ways(key["target"]))
    if sight.store:
        yield from (Command.of("redeliver", **key, which=which) for which in (CURRENT, PREVIOUS))


def _refusals(key: dict[str, str], sight: Sight) -> Iterator[Command]:
    first, last = sight.names()[0], sight.names()[-1]
    for by in (*NOBODIES, *UNPRIVILEGED[: 1 + sight.near_miss]):
        yield from (Command.of(REFUSED, **key, what=what, by=by, node=first) for what in (START, STOP))
    wrong = [call for call in MALFORMED if key["target"] in RECORDINGS or call not in OF_RECORDINGS]
    yield from (Command.of(ILL, **key, call=call, node=last) for call in wrong)
    yield from (Command.of(ILL, **key, call=wrong[0], by=by, node=first) for by in (NOBODIES[0], UNPRIVILEGED[0]))
    if sight.proxied:
        yield from (Command.of(FORWARDED, **key, client=client, node=first) for client in CLIENTS)
    if sight.store:
        yield Command.of("lost", **key, node=last)


def _of_pipelines(state: State, sight: Sight) -> Iterator[Command]:
    for target in sight.targets:
        for pace in (USUAL, *PACES):
            if pace != state.pace(target):
                yield Command.of("pace", target=target, how=pace)


def _of_leases() -> Iterator[Command]:
    for channel in CHANNELS:
        yield from (
            Command.of(how, target=channel, lease=lease) for how in (SEIZE, LOSE) for lease in ("service", "tuner")
        )
    yield Command.of(SEIZE, lease="slot")


def _of_workers(sight: Sight) -> Iterator[Command]:
    for name in (FIRST, STANDBY) if sight.standby else (FIRST,):
        yield from (Command.of(how, worker=name) for how in (KILL, TERM, STAND, RESUME, BEGIN) if how in sight.upsets)


def _of_apis(sight: Sight) -> Iterator[Command]:
    if API in sight.upsets:
        yield from (Command.of(API, node=name) for name in sight.names())
    yield from (Command.of(how) for how in (FLIP, *SECRETS) if how in sight.upsets)


def all_openings(sight: Sight) -> list[list[Command]]:
    """Returns beginnings with running sessions, with all slots taken, and with a channel that somebody else holds."""
    first, last = sight.names()[0], sight.names()[-1]
    one = Command.of(START, target="c1", profile="p1", node=first)
    two = Command.of(START, target="c2", profile="p2", node=last)
    found = [[one], [one, two]]
    if sight.recordings:
        found.append([one, Command.of(START, target="r1", profile="p1", at=MAIN_OFFSETS[0], node=last)])
    if sight.pipelines:
        found.append([Command.of("pace", target="c1", how=SLOW), one, two])
        if sight.recordings:
            film = Command.of(START, target="r1", profile="p1", at=MAIN_OFFSETS[0], node=last)
            found.append([Command.of("pace", target="r1", how=LONG), film])
    if sight.store:
        found.append([Command.of(SEIZE, target="c1", lease="service"), two])
    if STAND in sight.upsets:
        stands = Command.of(STAND, worker=FIRST)
        handed = [stands, one, Command.of(KILL, worker=FIRST), Command.of(BEGIN, worker=FIRST)]
        found += [[one, stands, two], handed]
        if sight.standby:
            found.append([Command.of(KILL, worker=FIRST), *_instead(), one])
    if KILL in sight.upsets:
        lapse, past = _waits()
        found += [[one, Command.of(KILL, worker=FIRST), two], [one, Command.of(KILL, worker=FIRST), lapse]]
        if sight.standby:
            orphan = [one, Command.of(BEGIN, worker=STANDBY), Command.of(KILL, worker=FIRST)]
            found += [orphan, [*orphan, lapse, past]]
    return found


def _instead() -> Iterator[Command]:
    """Yields what lets the standby take over, and stand still."""
    yield from (Command.of(how, worker=STANDBY) for how in (BEGIN, STAND))


def _waits() -> Iterator[Command]:
    """Yields the waits after which the session of a dead worker has to be given up; seldom anybody waits so long."""
    for timer, kind in (("what c1 p1 holds to lapse", "lapse"), ("c1 p1 to count no more", "past")):
        yield Command.of(WAIT, target="c1", kind=kind, side="after", **{"for": timer})


def all_races(sight: Sight) -> Iterator[Step]:
    """Yields identical starts, starts of one channel and of several, and a stop with a start of the same channel."""
    names = sight.names()
    first, last = names[0], names[-1]
    for target in sight.targets:
        same = tuple(_beside(_keys(target)[0], node) for node in (first, last, first))
        yield same[:2]
        yield same
        if target in CHANNELS:
            other = _beside(_keys(target)[1], last)
            stop = Command.of(STOP, **_keys(target)[0], which=CURRENT, node=first)
            yield from ((same[0], other), (stop, same[1]), (stop, other), (stop, stop))
    starts = tuple(_beside(_keys(target)[0], last) for target in CHANNELS)
    yield starts[:2]
    yield starts[1:]


def _beside(key: dict[str, str], node: str) -> Command:
    """Returns a start that is sent at the same instant as another one."""
    return Command.of(START, **key, node=node, together=True)


def ready(state: State, command: Command, spans: Spans) -> bool:
    """Whether the command makes sense in this state, and the document says what comes of it."""
    match command.name:
        case "start" | "lost":
            return _may_start(state, command, spans)
        case "pace":
            return not state.of_target(command.get("target"))
        case "seize" | "lose":
            return _may_take(state, command)
        case "kill" | "term" | "stand" | "resume" | "begin":
            return _may_upset(state, command)
        case "turn back":
            return bool(state.secrets[1])
    return True


def _may_start(state: State, command: Command, spans: Spans) -> bool:
    if command.name == "lost":
        return state.working and not any(each.key == key_of(command, spans) for each in state.living)
    return state.working or len([each for each in state.living if each.mode == NEW]) < MOST_NEW


def _may_take(state: State, command: Command) -> bool:
    """Leases are taken from who would notice, or where nobody holds them: half of what a dead session holds is open."""
    if command.get("lease") == "slot":
        held = sum(each.holds == BOTH and each.keeps for each in state.sessions)
        return held + state.slots < SLOTS and not any(each.begun and not state.attended(each) for each in state.living)
    channel = command.get("target")
    holder = state.holder(channel)
    if channel in state.foreign:
        return False
    if holder is None:
        return command.name == SEIZE and command.get("lease") == "service"
    if holder.mode == NEW:
        return command.name == SEIZE and command.get("lease") == "service"
    return holder.begun and state.attended(holder) and holder.holds == BOTH


def _may_upset(state: State, command: Command) -> bool:
    name = command.get("worker")
    how, other = state.worker(name), state.worker(STANDBY if name == FIRST else FIRST)
    told = len([each for each in state.living if each.begun and not each.worker]) <= MOST_DOUBTFUL
    match command.name:
        case "kill":
            return how != DOWN and told
        case "term":
            return how == UP and told
        case "stand":
            # The bus may have handed the next start to a worker that stands still, so no other one works then.
            return how == UP and other == DOWN
        case "resume":
            return how == STILL
    if name == STANDBY:
        return how == DOWN and other != STILL
    # A worker that flushes all leases at its start must not do so while another one runs sessions.
    return how == DOWN and (other != UP or not state.living) and other != STILL
