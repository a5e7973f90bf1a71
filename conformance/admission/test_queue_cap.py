"""The queue at its cap (seed Risks & Mitigations, large queue): who is taken, who is refused, and what a poll costs."""

import asyncio
import time
from statistics import median

from holdfast.check.finding import Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Held, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer, place, queued, refused
from holdfast.conformance.shared.wire import moment, status

SHORT_LINE = 10
POLLS = 100
# After this many polls another call is timed, to tell the cost of a poll from that of a busy machine.
PER_CONTROL = 10


@verifies("AD-QUEUE-05", busy=True, waits="5*prompt + queue_cap / 100")
async def test_who_waits_hears_its_place_also_at_the_cap(admission: Admission, T: SpecTime) -> None:
    cap = T.count("queue_cap")
    arena, _ = await _full(admission)
    crowd, newcomer = await arena.crowd(cap), await admission.character()
    with admission.arranging("AD-QUEUE-07"):
        expect(await arena.connect(newcomer), refused("QUEUE_FULL"), why="control: the queue is at its cap")

    before = await arena.status(crowd[cap // 2])
    with admission.arranging("AD-POLL-01"):
        demand(before.position is not None, "a position", before.describe(), "the poll of one who waits")
    expect(await arena.connect(crowd[cap // 2]), queued(position=before.position))
    expect(await arena.status(crowd[cap // 2]), place(before.position or 0, cap), why="its place afterwards")


@verifies("AD-QUEUE-07", busy=True, waits="5*prompt + queue_cap / 100 + promote_within")
async def test_the_queue_takes_exactly_as_many_as_its_cap(admission: Admission, T: SpecTime) -> None:
    cap = T.count("queue_cap")
    arena, inside = await _full(admission)
    await arena.crowd(cap - 1)
    last, *more = await admission.characters(6)
    expect(await arena.connect(last), queued(position=cap - 1))
    await _refused_at_the_cap(arena, more[0], T)
    expect(await arena.status(last), place(cap - 1, cap), why="the last in line")

    await arena.release(inside.answer.session_id, inside.character)
    await _until_position(arena, last, cap - 2, T)
    expect(await arena.connect(more[1]), queued(position=cap - 1), why="one was promoted, so one more is taken")
    await _refused_at_the_cap(arena, more[2], T)

    await arena.withdraw(last)
    expect(await arena.connect(more[3]), queued(position=cap - 1), why="one has left, so one more is taken")
    await _refused_at_the_cap(arena, more[4], T)


async def _refused_at_the_cap(arena: Instance, character: Character, T: SpecTime) -> None:
    answer = await arena.connect(character)
    expect(answer, refused("QUEUE_FULL"))
    T.at_most("prompt", since=_instant(answer.sent), seen=_instant(answer.received), what="the refusal")
    if not isinstance(answer.retry_after, int | float) or answer.retry_after < 1:
        arena.admission.context.warn("QUEUE_FULL comes without retryAfterSeconds >= 1")


async def _until_position(arena: Instance, character: Character, position: int, T: SpecTime) -> None:
    async def look() -> bool:
        return (await arena.status(character)).position == position

    with arena.admission.arranging("AD-QUEUE-10"):
        await T.until(look, give_up=T.promote_never, what="the promotion of the first in line")


def _instant(at: float) -> Moment:
    return Moment(at, at)


@verifies("AD-QUEUE-09", weight=4, waits="6*poll_interval + queue_cap / 100")
async def test_polls_at_the_cap_are_answered_fast(admission: Admission, T: SpecTime) -> None:
    arena, inside = await _full(admission)
    crowd = await arena.crowd(T.count("queue_cap"))
    start = T.now()
    answers, controls = await _poll_at_the_cadence(arena, crowd, inside.character, T.scaled(30), T)

    refusals = [answer for answer in answers if answer.status != 200]
    if refusals:
        raise Finding(
            [f"200 to each of {len(answers)} polls"], f"{len(refusals)} others, such as {refusals[0].describe()}"
        )
    if (slower := median(map(_took, answers)) - median(map(_took, controls))) > T.rank_p95:
        admission.context.warn(f"a poll takes {slower:.3f} s longer than another call at the same time (medians)")
        return
    spans = [moment(answer) for answer in answers]
    T.percentile("rank_p95", list(map(_took, answers)), 0.95, spans=spans, since=start)


async def _poll_at_the_cadence(
    arena: Instance, crowd: list[Character], inside: Character, seconds: float, T: SpecTime
) -> tuple[list[Answer], list[Answer]]:
    """Polls everyone once per poll_interval, evenly spread; a slow answer does not delay the polls after it.

    Returns the polls, and calls in between that look up no position: attempts of the one inside.
    """
    start, gap = time.monotonic(), T.poll_interval / len(crowd)
    polls: list[asyncio.Task[Answer]] = []
    controls: list[asyncio.Task[Answer]] = []
    while (due := len(polls) * gap) < seconds:
        await T.sleep(start + due - time.monotonic(), "the next poll")
        if len(polls) % PER_CONTROL == 0:
            controls.append(arena.admission.beside(arena.connect(inside)))
        polls.append(arena.admission.beside(arena.status(crowd[len(polls) % len(crowd)])))
    return list(await asyncio.gather(*polls)), list(await asyncio.gather(*controls))


def _took(answer: Answer) -> float:
    return answer.received - answer.sent


@verifies("AD-QUEUE-09", part=2, isolation="quiet", busy=True, waits="5*prompt + queue_cap / 100")
async def test_a_poll_at_the_cap_costs_redis_no_more_than_one_in_a_short_line(
    admission: Admission, T: SpecTime
) -> None:
    arena, _ = await _full(admission)
    crowd = await arena.crowd(SHORT_LINE)
    few = await _reply_bytes_per_poll(arena, crowd)
    crowd += await arena.crowd(T.count("queue_cap") - SHORT_LINE)
    many = await _reply_bytes_per_poll(arena, crowd)
    if not few:
        raise Inconclusive("Redis sent nothing for a poll, so the link does not carry the node's traffic")
    growth = T.share("rank_reply_growth")
    seen = f"{few:.0f} bytes a poll with {SHORT_LINE} waiting, {many:.0f} with {len(crowd)}"
    demand(many <= growth * few, f"at most {growth:g} times the bytes", seen)


async def _reply_bytes_per_poll(arena: Instance, crowd: list[Character]) -> float:
    link = arena.admission.deployment.link(arena.admission.nodes[0])
    before = await link.counters()
    polled = [crowd[turn % len(crowd)] for turn in range(POLLS)]
    answers = await arena.admission.parallel([lambda c=c: arena.status(c) for c in polled], 8)  # type: ignore[misc]  # lambda default
    for answer in answers:
        expect(answer, status(200), why="while polling")
    return ((await link.counters()).bytes_down - before.bytes_down) / POLLS


async def _full(admission: Admission) -> tuple[Instance, Held]:
    arena = await admission.instance(capacity=1)
    return arena, await arena.hold()
