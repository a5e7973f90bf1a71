"""Every pair that a walk can reach, written down: what is missing here, nobody would miss.

A situation is a word for what has become of the youngest session of a key (`fresh` if there was none), and where a
start makes a new one, a word for its channel. Left out are pairs that the model never draws, because the document does
not say what comes of them, those that need a worker that is away, where a walk can do nothing to workers, and waits
until the session of a dead worker has been ended by another: how soon that one looks for such sessions is its affair.
"""

from collections.abc import Iterator

from holdfast.check.walk.vocabulary import NO_NODE, Pair
from holdfast.conformance.intents.walks.clients import CLIENTS
from holdfast.conformance.intents.walks.commands import (
    API,
    BEGIN,
    FLIP,
    FORWARDED,
    ILL,
    KILL,
    LOSE,
    NOBODIES,
    PACES,
    REFUSED,
    RESUME,
    SECRETS,
    SEIZE,
    STAND,
    START,
    STOP,
    TERM,
    UNPRIVILEGED,
    YIELD,
    Sight,
)
from holdfast.conformance.intents.walks.malformed import MALFORMED, OF_RECORDINGS
from holdfast.conformance.intents.walks.spans import MAIN_OFFSETS, OFFSETS
from holdfast.conformance.intents.walks.state import CHANNELS, DOWN, FIRST, RECORDINGS, STANDBY

BROADLY = ("fresh", "live", "ended")
OVER, ROOMS = ("fresh", "ended"), ("free", "held", "full")
# What becomes of sessions whose worker is away.
AWAY = ("new", "stopping", "frozen", "orphan", "lapsed")
LOADS = ("idle", "queued", "busy")
_UPSETS = (
    *((f"{how} {FIRST}", workers, ("idle", "busy")) for how in (KILL, TERM) for workers in ("up down", "up up")),
    *((f"{how} {STANDBY}", workers, ("idle", "busy")) for how in (KILL, TERM) for workers in ("down up", "up up")),
    *((f"{how} {FIRST}", "still down", LOADS) for how in (RESUME, KILL)),
    *((f"{how} {STANDBY}", "down still", LOADS) for how in (RESUME, KILL)),
    (f"{STAND} {FIRST}", "up down", ("idle", "busy")),
    (f"{STAND} {STANDBY}", "down up", ("idle", "busy")),
    (f"{BEGIN} {FIRST}", "down down", LOADS),
    (f"{BEGIN} {FIRST}", "down up", ("idle",)),
    (f"{BEGIN} {STANDBY}", "down down", LOADS),
    (f"{BEGIN} {STANDBY}", "up down", ("idle", "busy")),
)
Found = Iterator[tuple[str, str]]


def pairs(sight: Sight) -> frozenset[Pair]:
    relations = ("same", "other") if sight.nodes > 1 else (NO_NODE,)
    found = {Pair(where, what, relation) for where, what in _intents(sight) for relation in relations}
    alone = [*_variants(sight), *_refusals(sight), *_waits(sight), *_operators(sight)]
    alone += [*_of_the_store(sight)] if sight.store else []
    alone += [*_of_pipelines()] if sight.pipelines else []
    return frozenset(found | {Pair(where, what) for where, what in alone})


def _living(sight: Sight) -> tuple[str, ...]:
    """Returns what may have become of a session that has not ended."""
    found = ("running", "aged", *(("starting",) if sight.pipelines else ()))
    return (*found, *AWAY) if sight.upsets else found


def _intents(sight: Sight) -> Found:
    first, *others = (f"{START} at {at}" for at in OFFSETS)
    ways = ("", " unattended") if sight.upsets else ("",)
    for over in OVER:
        yield from ((f"{over} {room}{way}", START) for room in ROOMS for way in ways)
        if sight.recordings:
            yield from ((f"{over}{way}", each) for each in (first, *others) for way in ways)
    for where in ("ended", *_living(sight)):
        yield from ((where, f"{STOP} {which}") for which in ("current", "previous"))
    for live in _living(sight):
        yield live, START
        if sight.recordings:
            yield live, first
    if sight.recordings:
        yield from (("live", each) for each in others)


def _variants(sight: Sight) -> Found:
    for where in BROADLY:
        yield from ((where, f"{START} with {way}") for way in sight.ways(CHANNELS[0]))
        if sight.recordings:
            first = f"{START} at {MAIN_OFFSETS[0]}"
            yield from ((where, f"{first} with {way}") for way in sight.ways(RECORDINGS[0]))


def _refusals(sight: Sight) -> Found:
    yield from (("any", what) for what in ("ask", f"{STOP} unknown"))
    for where in BROADLY:
        for by in (*NOBODIES, *UNPRIVILEGED[: 1 + sight.near_miss]):
            yield from ((where, f"{REFUSED} {what} by {by}") for what in (START, STOP))
        wrong = [call for call in MALFORMED if sight.recordings or call not in OF_RECORDINGS]
        yield from ((where, f"{ILL} {call}") for call in wrong)
        first = next(iter(MALFORMED))
        yield from ((where, f"{ILL} {first} by {by}") for by in (NOBODIES[0], UNPRIVILEGED[0]))
        if sight.proxied:
            yield from ((where, f"{FORWARDED} {client}") for client in CLIENTS)


def _waits(sight: Sight) -> Found:
    kinds = ["age", *(["pipeline"] if sight.pipelines else []), *(["lapse"] if sight.upsets else [])]
    yield from ((kind, f"wait until {side}") for kind in kinds for side in ("before", "after"))


def _of_the_store(sight: Sight) -> Found:
    for over in OVER:
        yield from ((f"{over} {room}", "lost") for room in ROOMS)
        if sight.recordings:
            yield over, "lost"
    for where in ("ended", *_living(sight)):
        yield from ((where, f"redeliver {which}") for which in ("current", "previous"))
    yield from ((where, f"{SEIZE} service") for where in ("free", *(["new"] if FLIP in sight.upsets else [])))
    held = ("running", "aged", *(("starting",) if sight.pipelines else ()))
    yield from ((where, f"{how} {lease}") for where in held for how in (SEIZE, LOSE) for lease in ("service", "tuner"))
    loads = LOADS if sight.upsets else ("idle", "busy")
    yield from ((load, what) for load in loads for what in (f"{SEIZE} slot", YIELD))


def _of_pipelines() -> Found:
    paces = ("usual", *PACES)
    yield from ((now, f"pace {then}") for now in paces for then in paces if now != then)


def _operators(sight: Sight) -> Found:
    yield from ((load, what) for what in (API, FLIP, *SECRETS) if what in sight.upsets for load in LOADS)
    for how, workers, loads in _UPSETS:
        name, _, worker = how.partition(" ")
        if name in sight.upsets and (sight.standby or (worker == FIRST and workers.endswith(DOWN))):
            yield from ((f"{workers} {load}", how) for load in loads)
