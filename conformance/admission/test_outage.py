"""While Redis is away (seed Risks & Mitigations, Redis outage): refused with retry-after, and nothing else."""

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from holdfast.check.finding import Unsafe, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance, outcomes, tally
from holdfast.conformance.admission.faults import in_time, redis_cut, redis_down, service_back, stalled
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.limiter import same_hint
from holdfast.conformance.admission.wire import Answer, Like, done, queued, refused, success, timed_out, unavailable
from holdfast.conformance.shared.wire import status

REFUSALS = 20
NEWCOMERS = 20


async def _refused_in_time(
    admission: Admission, T: SpecTime, fault: AbstractAsyncContextManager[object], *legal: Like
) -> None:
    """Makes an attempt right after the fault began, many more at once, and a poll; each must say when to try again."""
    arena = await admission.instance(capacity=1)
    await arena.hold()
    [waiting] = await arena.line_up(1)
    first, *rest = await admission.characters(REFUSALS)
    async with fault:
        for batch in ([first], rest):
            sent = T.now()
            for answer in await asyncio.gather(*(arena.connect(character) for character in batch)):
                in_time(T, answer, sent=sent, what="the refusal")
                expect(answer, *legal)
                _same_hint(answer)
        sent = T.now()
        poll = await arena.status(waiting)
        in_time(T, poll, sent=sent, what="the answer to a poll")
        expect(poll, status(503), why="status of a waiting character")
        demand(poll.retry_header is not None, "a Retry-After header", poll.describe(), "status of a waiting character")


def _same_hint(answer: Answer) -> None:
    """Raises Finding unless header and body of a refusal agree on when to try again; a timeout needs neither."""
    if answer.status == 503:
        agree = same_hint(answer)
        demand(agree, "a Retry-After header that agrees with retryAfterSeconds", answer.describe(), "a refusal")


@verifies("AD-OUT-01", isolation="disruptive", waits="attempt_deadline")
async def test_while_redis_is_down_each_attempt_is_refused_with_retry_after(admission: Admission, T: SpecTime) -> None:
    await _refused_in_time(admission, T, redis_down(admission), unavailable())


@verifies("AD-OUT-01", part=2, isolation="disruptive", waits="3*attempt_deadline")
async def test_while_redis_is_blackholed_each_attempt_is_answered_in_time(admission: Admission, T: SpecTime) -> None:
    await _refused_in_time(admission, T, stalled(admission), unavailable(), timed_out())


@verifies("AD-OUT-02", isolation="disruptive", busy=True, waits="attempt_deadline + recovery")
async def test_nothing_is_admitted_queued_or_replaced_without_redis(admission: Admission, T: SpecTime) -> None:
    free, full = await admission.instance(room=100), await admission.instance(capacity=1)
    await full.hold()
    line, probe = await full.line_up(2), await admission.character()
    to_free, to_full = await admission.characters(NEWCOMERS), await admission.characters(NEWCOMERS)
    running, dropped = [await free.hold() for _ in range(4)], [await free.hold() for _ in range(4)]
    offers = [await free.offer(held.character) for held in running]
    gone = T.now()
    for held in dropped:
        await held.socket.drop()
    await T.sleep(T.wait_tolerance, "the target to notice the drops")

    async with redis_down(admission):
        answers = await asyncio.gather(
            *(free.connect(character) for character in to_free),
            *(full.connect(character) for character in (*to_full, *line)),
            *(free.connect(held.character, replace=offer) for held, offer in zip(running, offers, strict=True)),
            *(free.connect(held.character, token=held.answer.token) for held in dropped),
        )
    admitted = outcomes([answer for answer in answers if answer.outcome in ("success", "queued")])
    if admitted:
        raise Unsafe(["nobody let in or queued without Redis"], tally(admitted))
    await service_back(free, probe, since=T.now())

    for held in dropped:
        answer = await free.reclaim(held.character, held.answer.token, gone=gone)
        expect(answer, success(held.answer.session_id), why="the token presented during the outage is still good")
    for held in running:
        await held.socket.beat("its session was not replaced")
        expect(await free.connect(held.character), refused("ALREADY_IN_SESSION"), why="its session was not replaced")
    await _unknown_so_far(free, to_free, full, [*line, *to_full], len(line))


async def _unknown_so_far(
    free: Instance, to_free: list[Character], full: Instance, to_full: list[Character], waiting: int
) -> None:
    """Raises Finding if a newcomer has a session or a place; only the first `waiting` on the full instance may."""
    for character in to_free:
        expect(await free.status(character), status(404), why="no answer gave it a place")
        expect(await free.connect(character), success(), why="no answer gave it a session")
    for character in to_full[waiting:]:
        expect(await full.status(character), status(404), why="no answer gave it a place")
    for position, character in enumerate(to_full):
        expect(await full.connect(character), queued(position=position), why="nobody else came to the line")


@verifies("AD-OUT-02", part=2, isolation="disruptive", nodes=2, waits="stall_long + recovery")
async def test_a_node_cut_off_from_redis_refuses_while_another_serves(admission: Admission, T: SpecTime) -> None:
    lonely, served, *_ = admission.nodes
    arena, elsewhere = await admission.instance(capacity=2), await admission.instance()
    character, second, third, probe = await admission.characters(4)
    async with stalled(admission, node=lonely):
        in_vain = await arena.connect(character, node=lonely)
        expect(in_vain, unavailable(), timed_out(), why="through the node that is cut off")
        session = await arena.connect(character, node=served)
        expect(session, success(), why="through the other node")
    await service_back(elsewhere, probe, since=T.now(), node=lonely)

    for node in (lonely, served):
        expect(await arena.connect(character, node=node), refused("ALREADY_IN_SESSION"), why=f"after healing, {node}")
    socket = await arena.attach(session.session_id, character, node=lonely)
    await socket.beat("the one session, through the healed node")
    expect(await arena.connect(second, node=lonely), success(), why="one session of two slots is taken")
    expect(await arena.connect(third, node=served), queued(position=0), why="two sessions of two slots are taken")


@verifies("AD-OUT-02", part=3, isolation="disruptive", nodes=2, waits="2*recovery + wait_tolerance")
async def test_what_others_did_while_a_node_was_cut_off_stands(admission: Admission, T: SpecTime) -> None:
    """Sessions with sockets on the node that is cut off end through the other: the node finds out when it is back."""
    lonely, served, *_ = admission.nodes
    arena, elsewhere = await admission.instance(), await admission.instance()
    gone, returned, replaced = [await arena.hold(node=lonely) for _ in range(3)]
    probe = await admission.character()
    async with redis_cut(admission, node=lonely):
        for held in (gone, returned):
            await arena.release(held.answer.session_id, held.character, node=served)
        back = await arena.hold(returned.character, node=served)
        new = await arena.keep(replaced.character, await arena.replaced(replaced.character, node=served), node=served)
    healed = T.now()
    await service_back(elsewhere, probe, since=healed, node=lonely)
    await T.sleep_until(healed, T.recovery, "the node to find out")

    for held, what in ((back, "the one who left and came back"), (new, "the one whose session was replaced")):
        await held.socket.beat(what)
        for node in (lonely, served):
            again = await arena.connect(held.character, node=node)
            expect(again, refused("ALREADY_IN_SESSION"), why=f"{what}, asked through {node}")
        left = await arena.leave(held.answer.session_id, held.character, node=lonely)
        expect(left, done(), why=f"{what} has the session that it was told of")
    for held, what in ((returned, "of the session that was left"), (replaced, "of the session that was replaced")):
        served_twice = held.socket.open_now
        demand(not served_twice, f"the old socket {what} is closed", "it is open", "after recovery", unsafe=True)
    expect(await arena.connect(gone.character, node=lonely), success(), why="the one who left has no session any more")


@pytest.mark.parametrize("fault", ["refused", "stalled"])
@verifies("AD-OUT-06", isolation="disruptive", waits="attempt_deadline + prompt")
async def test_metrics_can_be_scraped_without_redis(admission: Admission, T: SpecTime, fault: str) -> None:
    arena = await admission.instance()
    await arena.hold()
    people = await admission.characters(3)
    before = await admission.metrics()
    async with redis_down(admission) if fault == "refused" else stalled(admission):
        answers = await asyncio.gather(*(arena.connect(character) for character in people))
        with admission.arranging("AD-OUT-02"):
            for answer in answers:
                expect(answer, refused(), timed_out(), why="an attempt without Redis")
        asked = T.now()
        after = await admission.metrics(owner="AD-OUT-06")
        T.at_most("prompt_never", since=asked, seen=T.now(), what="the scrape")
        T.at_most("prompt", since=asked, seen=T.now(), what="the scrape")

    counted = sum(
        after.total("connection_attempt_total", reason=reason) - before.total("connection_attempt_total", reason=reason)
        for reason in ("failed", "timeout")
    )
    expect(counted, len(people), why="refusals of the outage in connection_attempt_total")
    gauge = "session_active_current"
    demand(after.has(gauge), f"{gauge} in the scrape", "it is missing")
    expect(after.total(gauge), before.total(gauge), why=f"{gauge} at its last value")
