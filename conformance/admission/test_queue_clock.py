"""Nodes whose clocks differ (seed Risks & Mitigations, clock skew): Redis server time decides."""

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import values, wire
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, locked, success
from holdfast.conformance.shared.wire import moment


@verifies("AD-QUEUE-03", isolation="quiet", nodes=2)
async def test_arrival_decides_between_nodes_whose_clocks_differ(admission: Admission, T: SpecTime) -> None:
    skew = await _set_ahead(admission, admission.nodes[0], T.scaled(300))
    arena, (first, second), _ = await _two_waiting(admission)

    for place, character in enumerate((first, second)):
        polls = [await arena.status(character, node=node) for node in admission.nodes]
        for poll in polls:
            expect(poll, wire.place(place), why="its place, through each node")
        _same_estimate(polls, skew)


def _same_estimate(polls: list[Answer], skew: float) -> None:
    """Estimates are optional, but a node whose clock is ahead must not add its error to them."""
    given = [poll.fields.get("estimatedWaitSeconds") for poll in polls]
    if waits := [float(wait) for wait in given if isinstance(wait, int | float)]:
        told = ", ".join(f"{wait:g}" for wait in waits)
        demand(min(waits) >= 0, "no negative estimatedWaitSeconds", told)
        apart = max(waits) - min(waits)
        demand(apart < skew / 2, "estimatedWaitSeconds alike on all nodes", told, f"the clocks differ by {skew:g} s")


@verifies("AD-QUEUE-03", part=2, isolation="quiet", nodes=2)
async def test_scores_are_redis_time(admission: Admission, T: SpecTime) -> None:
    await _set_ahead(admission, admission.nodes[0], T.scaled(300))
    keys = admission.keys()
    before = await keys.now()
    arena, line, _ = await _two_waiting(admission)
    after = await keys.now()
    for character in line:
        score = await keys.ask("ZSCORE", keys.name("queue_pending", arena.id), character.id)
        with admission.arranging("AD-QUEUE-01"):
            demand(score is not None, "the waiting character in queue:pending", "it is no member")
        enqueued = float(score) / values.unit(float(score))
        apart = max(before - enqueued, enqueued - after)
        demand(apart <= T.wait_tolerance, "a score that is Redis time at the enqueue", f"{apart:.3f} s away from it")


@verifies("AD-QUEUE-03", part=3, isolation="quiet", nodes=2, waits="poll_interval + 4*promote_within")
async def test_the_measured_wait_is_true_whichever_node_promotes(admission: Admission, T: SpecTime) -> None:
    """Each node promotes one that the other has enqueued and one of its own."""
    ahead, right = admission.nodes[:2]
    await _set_ahead(admission, ahead, T.scaled(300))
    arena = await admission.instance(capacity=1, node=right)
    leaving = await arena.hold(node=right)
    before = await _waited(admission)
    line = await admission.characters(4)
    places = [await arena.enqueue(c, node=node) for c, node in zip(line, (ahead, right, ahead, right), strict=True)]
    await T.sleep_until(moment(places[-1]), T.scaled(5), "a wait worth measuring")

    inside, session, least, most = leaving.character, leaving.answer.session_id, 0.0, 0.0
    for character, place, releasing in zip(line, places, (right, ahead, ahead, right), strict=True):
        left = await arena.release(session, inside, node=releasing)
        promoted, seen = await arena.promoted(character, since=moment(left))
        waited = seen.since(moment(place))
        least, most = least + waited.lo, most + waited.hi
        inside, session = character, promoted.session_id

    async def counted() -> bool:
        return (await _waited(admission))[0] >= before[0] + len(line)

    with admission.arranging("AD-OBS-08"):
        await T.until(counted, give_up=T.prompt_never, what="the promotions in queue_wait_seconds")
    grown = (await _waited(admission))[1] - before[1]
    least, most = least - T.wait_tolerance, most + T.wait_tolerance
    demand(least <= grown <= most, f"queue_wait_seconds_sum rises by {least:.2f} to {most:.2f}", f"by {grown:.2f}")


async def _waited(admission: Admission) -> tuple[float, float]:
    """Returns how many promotions queue_wait_seconds counts over all nodes, and the sum of their waits."""
    scrapes = await admission.metrics_of_all()
    count, total = (sum(scrape.total(f"queue_wait_seconds_{what}") for scrape in scrapes) for what in ("count", "sum"))
    return count, total


@verifies("AD-QUEUE-04", isolation="quiet", nodes=2, waits="0.5*token_ttl")
async def test_graces_and_locks_do_not_expire_by_a_clock_that_is_ahead(admission: Admission, T: SpecTime) -> None:
    right, ahead = admission.nodes[:2]
    await _set_ahead(admission, ahead, T.scaled(120))
    arena, (lost, unlucky, other) = await admission.instance(node=right), await admission.characters(3)
    session, dropped = await arena.dropped(lost, node=right)
    lock = await arena.lock(unlucky, node=right)
    await T.sleep_until(moment(lock), T.scaled(30), "half of grace and lock")

    expect(await arena.reclaim(lost, session.token, gone=dropped, node=ahead), success(session.session_id))
    answer = await arena.connect(unlucky, node=ahead)
    T.at_most("rate_lock", since=moment(lock), seen=moment(answer), what="the last look at the lock")
    expect(answer, locked())
    with admission.arranging("AD-RATE-04"):
        expect(await arena.connect(other, node=ahead), success(), why="control: only this user is locked")


@verifies("AD-QUEUE-04", part=2, isolation="quiet", nodes=2)
async def test_a_newcomer_stands_last_even_after_the_clock_stepped_back(admission: Admission, T: SpecTime) -> None:
    """A score ahead of the clock is what remains after the clock has stepped back."""
    arena, line, _ = await _two_waiting(admission)
    keys, newcomers = admission.keys(), await admission.characters(2)
    name = keys.name("queue_pending", arena.id)
    stored = await keys.ask("ZSCORE", name, line[-1].id)
    with admission.arranging("AD-QUEUE-01"):
        demand(stored is not None, "the waiting character in queue:pending", "it is no member")
    score = float(stored)
    await keys.ask("ZADD", name, "XX", f"{score + T.scaled(60) * values.unit(score):.0f}", line[-1].id)

    for place, newcomer in enumerate(newcomers, len(line)):
        await arena.queues(newcomer, position=place)
    for place, character in enumerate((*line, *newcomers)):
        expect(await arena.status(character), wire.place(place), why="place in line after the step back")


async def _set_ahead(admission: Admission, node: str, seconds: float) -> float:
    await admission.restart(node, clock_offset=f"{seconds:g}")
    return seconds


async def _two_waiting(admission: Admission) -> tuple[Instance, list[Character], Held]:
    """Enqueues one through the first node, then one through the second; the slot is held through the second."""
    arena = await admission.instance(capacity=1)
    held = await arena.hold(node=admission.nodes[1])
    line = await admission.characters(2)
    for place, (character, node) in enumerate(zip(line, admission.nodes, strict=False)):
        await arena.queues(character, position=place, node=node)
    return arena, line, held
