"""Reconnecting through any node, never with two live sockets, and nearly always with success (seed §1, §2, §8)."""

import asyncio
from functools import partial

from holdfast.check.finding import Finding, Inconclusive, Unsafe, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment, samples_needed
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import served
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.values import same_id
from holdfast.conformance.admission.wire import Answer, refused, success, timed_out

CROWD = 50
# More misses than these miss the row. Each miss, and each drop for which the suite was late, needs another wave.
MISSES_TOLERATED, WAVES = 2, 3
ARRIVING_AT_ONCE = 16
# How often two nodes close a socket of each other.
ROUNDS = 3


@verifies("AD-RECON-08", waits="2*prompt_never + 2*wait_tolerance")
async def test_a_token_presented_beside_a_live_socket_leaves_one_socket(admission: Admission, T: SpecTime) -> None:
    a = admission.nodes[0]
    await _beside_a_live_socket(admission, T, a, a)


@verifies("AD-RECON-08", part=2, waits="2*prompt_never + 2*wait_tolerance")
async def test_a_token_presented_to_another_node_leaves_one_socket(admission: Admission, T: SpecTime) -> None:
    a, b, *_ = admission.nodes
    await _beside_a_live_socket(admission, T, a, b)


@verifies("AD-RECON-08", part=2, waits="wait_tolerance")
async def test_a_session_dropped_on_one_node_resumes_through_another(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    a, b, *_ = admission.nodes
    session, gone = await arena.dropped(character, node=a)

    expect(await arena.reclaim(character, session.token, gone=gone, node=b), success(session.session_id))
    await served(await arena.attach(session.session_id, character, node=b, owner="AD-RECON-08"), "the new socket")


@verifies("AD-RECON-08", part=2, waits="2*prompt_never + 2*wait_tolerance")
async def test_nodes_that_supersede_each_others_sockets_at_the_same_time_leave_one_each(
    admission: Admission, T: SpecTime
) -> None:
    """Node b gets a token for a session of node a, while a may still be busy with a socket of b that it superseded."""
    a, b, *_ = admission.nodes
    arena = await admission.instance()
    for _ in range(ROUNDS):
        mine, theirs = await admission.characters(2)
        session, old = await arena.join(mine, node=a)
        await arena.join(theirs, node=b)
        offer = await arena.offer(theirs, node=a)
        await arena.connect(theirs, replace=offer, node=a)
        new = await _resume_by_body(arena, mine, session, b)
        if new is None:
            gone = await admission.lose(old)
            answer = await arena.reclaim(mine, session.token, gone=gone, node=b)
            expect(answer, success(session.session_id), why="control: the same token once the socket is lost")
        else:
            await _only_the_new_one_lives(T, old, new)


async def _beside_a_live_socket(admission: Admission, T: SpecTime, old_node: str, new_node: str) -> None:
    """Resumes by the body field, and by the handshake parameter if the target has it, while the old socket is open."""
    resumes = [_resume_by_body, *([_resume_by_handshake] if admission.features.get("ws_reconnect") else [])]
    for resume in resumes:
        arena, character = await admission.instance(), await admission.character()
        session, old = await arena.join(character, node=old_node)
        new = await resume(arena, character, session, new_node)
        if new is None:
            gone = await admission.lose(old)
            answer = await arena.reclaim(character, session.token, gone=gone, node=new_node)
            expect(answer, success(session.session_id), why="control: the same token once the socket is lost")
        else:
            await _only_the_new_one_lives(T, old, new)


async def _resume_by_body(arena: Instance, character: Character, session: Answer, node: str) -> Socket | None:
    """Presents the token; returns the new socket, or None if it was refused."""
    answer = await arena.connect(character, token=session.token, node=node)
    expect(answer, refused(), success(session.session_id))
    if answer.outcome != "success":
        return None
    return await arena.attach(session.session_id, character, node=node, owner="AD-RECON-08")


async def _resume_by_handshake(arena: Instance, character: Character, session: Answer, node: str) -> Socket | None:
    query = {"reconnectionToken": session.token, "characterId": character.id}
    socket = await arena.try_attach(query, character.user, node=node)
    if await socket.was_refused():
        return None
    named = (await socket.first_frame()).get("sessionId")
    demand(same_id(named, session.session_id), f"session {session.session_id}", str(named), "the resumed session")
    return socket


async def _only_the_new_one_lives(T: SpecTime, old: Socket, new: Socket) -> None:
    if await old.answers():
        raise Unsafe(["one live socket of a session"], "the old one is served after the new one got its first frame")
    closed = await old.closed_by_server(T.prompt_never)
    # Two connections are read in any order, so a close that we read later may have been sent earlier.
    late = closed.lo - new.frames[0].at
    demand(
        late <= T.wait_tolerance, "the old socket closed before the first frame on the new one", f"{late:.2f} s later"
    )
    await served(new, "the new socket")


@verifies("AD-RECON-08", part=3, isolation="quiet", waits="attempt_deadline + 2*prompt_never")
async def test_a_socket_cut_off_from_its_client_never_lives_beside_the_new_one(
    admission: Admission, T: SpecTime
) -> None:
    arena, character = await admission.instance(), await admission.character()
    link, url = await admission.deployment.client_link(admission.nodes[0])
    session = await arena.admit(character)
    old = await arena.attach(session.session_id, character, url=url)
    await link.stall()
    seen, stalled = len(old.frames), await link.counters()

    answer = await arena.connect(character, token=session.token)
    expect(answer, success(session.session_id), refused(), timed_out())
    resumed = answer.outcome == "success"
    new = await arena.attach(session.session_id, character, owner="AD-RECON-08") if resumed else None
    if (await link.counters()).bytes_down != stalled.bytes_down:
        raise Inconclusive("the cut let bytes through to the client")
    await link.heal()

    if new is None:
        demand(await old.answers() or not old.open_now, "the old socket served or closed", "it is open and silent")
        return
    await old.closed_by_server(T.prompt_never)
    expect(len(old.frames), seen, why="frames on the old socket once there is a new one")
    await served(new, "the new socket")


@verifies("AD-RECON-10", waits="2*token_ttl")
async def test_nearly_all_reconnects_within_the_life_of_the_token_succeed(admission: Admission, T: SpecTime) -> None:
    least = T.share("reconnect_success_min")
    arena = await admission.instance(room=2 * samples_needed(least, misses=MISSES_TOLERATED))
    tried = missed = 0
    for _ in range(WAVES):
        back = await _drop_and_come_back(arena, T, samples_needed(least, misses=missed) - tried)
        tried, missed = tried + len(back) - back.count(None), missed + back.count(False)
        wanted, seen = f"at least {least:.0%} of the reconnects succeed", f"{missed} of {tried} failed"
        demand(missed <= MISSES_TOLERATED, wanted, seen)
        if tried >= samples_needed(least, misses=missed):
            return
    raise Inconclusive(f"{tried} drops with {missed} misses are too few to show {least:.0%}")


async def _drop_and_come_back(arena: Instance, T: SpecTime, count: int) -> list[bool | None]:
    """Drops and reconnects `count` sessions, each after a time of its own; few arrive at once to spare the machine."""
    admission, arrivals = arena.admission, asyncio.Semaphore(ARRIVING_AT_ONCE)
    draw = admission.context.random
    away = [draw.uniform(1 / 60, 55 / 60) * T.token_ttl for _ in range(count)]
    return await admission.parallel([partial(_comes_back, arena, T, arrivals, each) for each in away], at_once=count)


async def _comes_back(arena: Instance, T: SpecTime, arrivals: asyncio.Semaphore, away: float) -> bool | None:
    """Returns whether the session was resumed and is served; None if the suite itself came too late."""
    async with arrivals:
        character = await arena.admission.character()
        session, socket = await arena.join(character)
        gone = await socket.drop()
    await T.sleep_until(gone, away, "the reconnects")
    try:
        answer = await arena.reclaim(character, session.token, gone=gone)
    except Inconclusive:
        return None
    if not same_id(answer.session_id, session.session_id):
        return False
    await T.sleep(T.wait_tolerance, "what a client takes to open its socket")
    return await (await arena.try_attach({"sessionId": session.session_id}, character.user)).answers()


@verifies("AD-RECON-10", part=2, isolation="disruptive", nodes=2, busy=True, waits="recovery_never")
async def test_the_clients_of_a_killed_node_resume_through_another(admission: Admission, T: SpecTime) -> None:
    a, b = admission.nodes
    arena, people = await admission.instance(room=CROWD), await admission.characters(CROWD)
    joined = await admission.parallel([partial(arena.hold, each, node=a) for each in people], at_once=ARRIVING_AT_ONCE)
    killed = await admission.kill(a)

    returns = await admission.parallel(
        [partial(_resume_with_retries, arena, T, held.character, held.answer, b, killed) for held in joined]
    )
    T.at_most("recovery", since=killed, seen=max(returns, key=lambda seen: seen.hi), what="the last client's return")


async def _resume_with_retries(
    arena: Instance, T: SpecTime, character: Character, session: Answer, node: str, killed: Moment
) -> Moment:
    async def resume() -> Answer | None:
        answer = await arena.connect(character, token=session.token, node=node)
        if answer.reason == "RATE_LIMITED":
            raise Finding(["the session through another node"], "its token refused until the limiter locked the user")
        return answer if answer.outcome == "success" else None

    answer, seen = await T.until(
        resume, give_up=T.recovery_never, since=killed, what="the session through another node", every=T.recovery / 5
    )
    expect(answer, success(session.session_id))
    return seen
