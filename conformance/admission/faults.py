"""Faults on the links between nodes and Redis. Each raises Inconclusive if the link shows that it was not in force."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import Answer
from holdfast.target.deployment import Link


@contextlib.asynccontextmanager
async def stalled(admission: Admission, *, node: str | None = None, direction: str = "both") -> AsyncIterator[Link]:
    """Stalls the link: no answers come. With `direction="down"` Redis runs commands meanwhile, else after the stall."""
    link = admission.deployment.link(node or admission.nodes[0])
    await link.stall(direction)
    admission.context.transcript.note(f"{link.name}: stalled ({direction})")
    passed = (await link.counters()).bytes_down
    yield link
    if (await link.counters()).bytes_down != passed:
        raise Inconclusive(f"{link.name}: answers came through although the link was stalled")
    await _heal(admission, [link])


async def during_stall(
    admission: Admission, seconds: float, *calls: Callable[[], Awaitable[Answer]], direction: str = "both"
) -> tuple[list[Answer], Moment]:
    """Makes the calls at the begin of a stall of this length; returns their answers, and when they were sent."""
    async with stalled(admission, direction=direction):
        sent = admission.T.now()
        pending = asyncio.gather(*(call() for call in calls))
        await admission.T.sleep_until(sent, seconds, "the stall to end")
    return await pending, sent


def in_time(T: SpecTime, answer: Answer, *, sent: Moment, what: str) -> None:
    """Judges that the answer came by the deadline of every attempt."""
    seen = Moment(answer.received, answer.received)
    T.at_most("attempt_deadline", since=sent, seen=seen, tolerance="deadline_slack", what=what)


@contextlib.asynccontextmanager
async def redis_down(admission: Admission, *, nodes: Sequence[str] = ()) -> AsyncIterator[None]:
    """Breaks the connections to Redis and refuses new ones during the block."""
    links = [admission.deployment.link(node) for node in nodes or admission.nodes]
    for link in links:
        await link.refuse()
        admission.context.transcript.note(f"{link.name}: refused")
    yield
    await _broken_all_the_while(links)
    await _heal(admission, links)


@contextlib.asynccontextmanager
async def redis_cut(admission: Admission, *, node: str | None = None) -> AsyncIterator[None]:
    """Resets the connections to Redis during the block, open ones and every new one."""
    link = admission.deployment.link(node or admission.nodes[0])
    await link.cut()
    admission.context.transcript.note(f"{link.name}: cut")
    yield
    await _broken_all_the_while([link])
    await _heal(admission, [link])


async def service_back(arena: Instance, character: Character, *, since: Moment, node: str | None = None) -> Moment:
    """Waits until a newcomer to an instance with a free slot is admitted again; returns when."""
    T = arena.admission.T

    async def admitted() -> Answer | None:
        answer = await arena.connect(character, node=node)
        return answer if answer.outcome == "success" else None

    _, seen = await T.until(
        admitted, give_up=T.recovery_never, since=since, every=T.deadline_slack / 2, what="admission to work again"
    )
    return seen


async def _broken_all_the_while(links: Sequence[Link]) -> None:
    for link in links:
        if (await link.counters()).open:
            raise Inconclusive(f"{link.name}: a connection to Redis was open although the link was broken")


async def _heal(admission: Admission, links: Sequence[Link]) -> None:
    for link in links:
        await link.heal()
        admission.context.transcript.note(f"{link.name}: healed")
