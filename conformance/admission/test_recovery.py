"""After Redis was away (seed Risks & Mitigations, Redis outage): back by itself, with everybody's session intact."""

import asyncio
import math
from functools import partial

from holdfast.check.finding import Finding, Inconclusive, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.faults import redis_cut, service_back
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import Answer, place, refused, success

# Heartbeat period in heartbeat intervals: regular under every reading.
CADENCE = 0.9
CUTS, CROWD = 3, 12
# In janitor intervals: how long before a cleanup the first node is back, and how much later the second.
_EARLY, _APART = 0.3, 0.4


async def _play(arena: Instance, count: int) -> list[Held]:
    """Makes `count` sessions with open sockets; the check itself sends their heartbeats."""
    people = await arena.admission.characters(count)
    return [Held(character, *await arena.join(character)) for character in people]


async def _all_as_before(arena: Instance, playing: list[Held]) -> None:
    """Raises Finding unless every socket is served and every session has its old id."""
    for held in playing:
        await held.socket.beat("its session is still there")
        expect(await arena.connect(held.character), refused("ALREADY_IN_SESSION"), why="its session is still there")
    gone = [await held.socket.drop() for held in playing]
    T = arena.admission.T
    await T.sleep(T.wait_tolerance, "the target to notice the drops")
    for held, dropped in zip(playing, gone, strict=True):
        answer = await arena.reclaim(held.character, held.answer.token, gone=dropped)
        expect(answer, success(held.answer.session_id), why="its token of before the outage, and its session")


@verifies(
    "AD-OUT-03", isolation="disruptive", waits="outage_long + janitor_check + heartbeat_interval/2 + wait_tolerance"
)
async def test_beating_sessions_survive_an_outage_longer_than_the_stale_limit(
    admission: Admission, T: SpecTime
) -> None:
    """The last beat before the healing leaves the cleanup almost a whole interval with old heartbeat times.

    Half an interval of play beforehand puts the healing between two cleanups, if they count from the node's start.
    """
    arena = await admission.instance()
    playing = await _play(arena, 5)
    every = CADENCE * T.heartbeat_interval
    await T.sleep(T.heartbeat_interval / 2, "half a heartbeat interval")
    async with redis_cut(admission):
        start = T.now()
        await _beat_all(T, playing, start, [T.outage_long - k * every for k in (3, 2, 1, 0)])
    healed = T.now()
    await _beat_all(T, playing, healed, [every])
    await T.sleep_until(healed, T.janitor_check, "a whole janitor interval")

    await _all_as_before(arena, playing)


@verifies(
    "AD-OUT-03", part=2, isolation="disruptive", nodes=2, waits="outage_long + 2*janitor_interval + janitor_check"
)
async def test_no_node_cleans_up_while_another_is_still_coming_back(admission: Admission, T: SpecTime) -> None:
    """One node has Redis again a little before the other, within the time that recovery may take.

    A cleanup of the first one falls in between, if cleanups count from the node's start. Somebody waits for a slot: a
    session that was ended wrongly can't come back then.
    """
    started, every = T.now(), T.janitor_interval
    first, second, *_ = admission.nodes
    arena = await admission.instance(capacity=3)
    playing = [await arena.hold(node=second) for _ in range(3)]
    [waiting] = await arena.line_up(1)
    rounds = math.ceil((T.now().lo - started.lo + T.outage_long) / every + _EARLY)
    async with redis_cut(admission, node=second):
        async with redis_cut(admission, node=first):
            await T.sleep_until(started, (rounds - _EARLY) * every, "the outage")
        await T.sleep(_APART * every, "the other node, which is not back yet")
    healed = T.now()
    await T.sleep_until(healed, T.janitor_check, "a whole janitor interval")

    expect(await arena.status(waiting), place(0, 1), why="no slot has become free")
    await _all_as_before(arena, playing)


async def _beat_all(T: SpecTime, playing: list[Held], since: Moment, at: list[float]) -> None:
    for seconds in at:
        await T.sleep_until(since, seconds, "the next heartbeats")
        for held in playing:
            if not held.socket.open_now:
                raise Finding(["the socket stays open"], held.socket.describe(), "while Redis is away, or after it")
            await held.socket.beat("while Redis is away, or after it")


@verifies("AD-OUT-04", isolation="disruptive", waits="2*attempt_deadline + recovery + wait_tolerance")
async def test_service_returns_by_itself_and_all_is_as_before(admission: Admission, T: SpecTime) -> None:
    arena, free = await admission.instance(capacity=3), await admission.instance()
    playing, line = [await arena.hold() for _ in range(3)], await arena.line_up(5)
    probe = await admission.character()
    async with redis_cut(admission):
        await T.sleep(T.scaled(20), "the outage")
    healed = T.now()

    seen = await service_back(free, probe, since=healed)
    T.at_most("recovery", since=healed, seen=seen, what="the return of service")
    for position, character in enumerate(line):
        expect(await arena.status(character), place(position, len(line)), why="its place after the outage")
    await _all_as_before(arena, playing)


async def _cut_amid_connects(admission: Admission, T: SpecTime) -> tuple[Instance, list[Character]]:
    """Connects everybody during cuts, to an instance with room for all; those not admitted try once more."""
    arena, free = await admission.instance(room=CUTS * CROWD), await admission.instance()
    people = await admission.characters(CUTS * CROWD)
    probes = await admission.characters(CUTS)
    lost: list[Character] = []
    for number, probe in enumerate(probes):
        crowd = people[number * CROWD : (number + 1) * CROWD]
        answers = await _lose_replies(admission, T, arena, crowd, after=number * T.redis_hop)
        lost += [character for character, answer in zip(crowd, answers, strict=True) if answer.outcome != "success"]
        await service_back(free, probe, since=T.now())
    if not lost:
        raise Inconclusive("every attempt was answered before the cut")
    for character in lost:
        again = await arena.connect(character)
        expect(again, success(), refused("ALREADY_IN_SESSION"), why="tried once more after a lost reply")
    return arena, people


async def _lose_replies(
    admission: Admission, T: SpecTime, arena: Instance, crowd: list[Character], *, after: float
) -> list[Answer]:
    """Connects the crowd; Redis runs the commands, but its answers are held and then lost with the connection."""
    link = admission.deployment.link(admission.nodes[0])
    await admission.warm(admission.nodes[:1], len(crowd))
    answers = asyncio.gather(*(arena.connect(character) for character in crowd))
    await T.sleep(after, "some of the connects to be answered")
    await link.stall("down")
    await T.sleep(T.deadline_slack, "the others to reach Redis")
    async with redis_cut(admission):
        pass
    return await answers


@verifies("AD-OUT-04", isolation="disruptive", busy=True, waits="3*recovery + slack")
async def test_an_attempt_whose_reply_was_lost_can_be_repeated(admission: Admission, T: SpecTime) -> None:
    arena, people = await _cut_amid_connects(admission, T)
    for character in people:
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), why="each has its session")


@verifies("AD-OUT-04", part=2, isolation="disruptive", busy=True, waits="3*recovery + slack")
async def test_after_lost_replies_every_character_has_one_record(admission: Admission, T: SpecTime) -> None:
    arena, people = await _cut_amid_connects(admission, T)
    keys = admission.keys()
    markers = [await keys.ask("GET", keys.name("session_char", character.id)) for character in people]
    members = await keys.ask("SMEMBERS", keys.name("session_instance", arena.id))

    without = [character.id for character, marker in zip(people, markers, strict=True) if marker is None]
    none_of(without, "character with a session and no session:char marker")
    none_of(sorted(set(members) ^ set(markers)), "session in session:instance or session:char alone")


async def _back_empty(admission: Admission, T: SpecTime) -> tuple[Instance, list[Held], Moment]:
    """Empties the Redis of a full instance, registers the instance again, and lets newcomers try."""
    arena = await admission.instance(capacity=2)
    playing = await _play(arena, 2)
    for held in playing:
        held.socket.keep_beating(T.heartbeat_interval)
    newcomers = await admission.characters(10)
    await _emptied(admission)
    back = T.now()
    await _registered_again(admission, arena, [held.character for held in playing] + newcomers, back)
    for character in newcomers:
        answer = await arena.connect(character)
        if answer.outcome == "success":
            socket = await arena.try_attach({"sessionId": answer.session_id}, character.user)
            playing.append(Held(character, answer, socket))
    return arena, playing, back


async def _emptied(admission: Admission) -> None:
    store = admission.deployment.store
    if store is None:
        raise NotObservable("[[node]] start with {redis}: only a Redis that Holdfast runs can be restarted empty")
    await store.restart(empty=True)


async def _registered_again(
    admission: Admission, arena: Instance, people: list[Character], since: Moment, *, node: str | None = None
) -> None:
    T = admission.T

    async def instance() -> bool:
        answer = await admission.ask_admin(wire.put_instance(arena.id, capacity=2, state="accepting"), node=node)
        return 200 <= answer.status < 300

    with admission.arranging("AD-OUT-04"):
        await T.until(instance, give_up=T.recovery_never, since=since, what="administration to work again")
    if admission.features.has("accounts"):
        await admission.parallel([partial(admission.register, each, node=node) for each in people])


@verifies("AD-OUT-05", isolation="disruptive", waits="2*recovery")
async def test_an_empty_redis_does_not_oversell(admission: Admission, T: SpecTime) -> None:
    _, playing, back = await _back_empty(admission, T)
    for times in (1, 1.5, 2):
        await T.sleep_until(back, times * T.recovery, "the nodes to put it right")
        open_now = sum(held.socket.open_now for held in playing)
        when = f"{times:g} x recovery after the restart"
        demand(open_now <= 2, "at most 2 open sockets", f"{open_now}", when, unsafe=True)


@verifies("AD-OUT-05", part=2, isolation="disruptive", waits="2*recovery")
async def test_an_empty_redis_learns_the_sessions_of_open_sockets(admission: Admission, T: SpecTime) -> None:
    arena, playing, back = await _back_empty(admission, T)
    keys = admission.keys()

    async def rebuilt() -> bool:
        members = await keys.ask("SMEMBERS", keys.name("session_instance", arena.id))
        return set(members) == {held.answer.session_id for held in playing if held.socket.open_now}

    _, seen = await T.until(
        rebuilt, give_up=T.recovery_never, since=back, what="members of session:instance to be the open sockets"
    )
    T.at_most("recovery", since=back, seen=seen, what="the slots differ from the open sockets")


@verifies("AD-OUT-05", part=3, isolation="disruptive", nodes=2, waits="3*recovery")
async def test_an_empty_redis_doubles_nobody_whose_node_comes_back_late(admission: Admission, T: SpecTime) -> None:
    """Another node, which can't know of the open socket, admits its character before that socket's node is back."""
    lonely, other, *_ = admission.nodes
    arena = await admission.instance(capacity=2)
    old = await arena.hold(node=lonely)
    async with redis_cut(admission, node=lonely):
        await _emptied(admission)
        await _registered_again(admission, arena, [old.character], T.now(), node=other)
        with admission.arranging("AD-OUT-04"):
            new = await arena.keep(old.character, await arena.admit(old.character, node=other), node=other)
    healed = T.now()

    for times in (1, 1.5, 2):
        await T.sleep_until(healed, times * T.recovery, "the nodes to put it right")
        both = old.socket.open_now and new.socket.open_now
        when = f"{times:g} x recovery after its node is back"
        demand(not both, "at most one open socket of the character", "two", when, unsafe=True)
    # Which of the two stays is open, but one does.
    [kept] = [held for held in (old, new) if held.socket.open_now] or [new]
    await kept.socket.beat("the one that stayed")
    for node in (lonely, other):
        again = await arena.connect(old.character, node=node)
        expect(again, refused("ALREADY_IN_SESSION"), why=f"its one session, asked through {node}")
