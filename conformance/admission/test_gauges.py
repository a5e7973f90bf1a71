"""Gauges (seed §4 Observability Taxonomy, §10): sessions that hold a slot, the depth of the queue, and its peak."""

from collections.abc import Awaitable, Callable
from functools import partial

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import place
from holdfast.conformance.shared.wire import moment

SESSIONS, DEPTH, PEAK = "session_active_current", "queue_depth_current", "queue_depth_peak"


def _gauge(admission: Admission, name: str) -> Callable[[], Awaitable[float]]:
    """Returns a function that reads the gauge; any node will do, because a gauge is the cluster's value.

    All three count characters, so no series of them is ever below 0.
    """

    async def look() -> float:
        metrics = await admission.metrics()
        below = [f"{value:g}" for sample, _, value in metrics.samples if sample == name and value < 0]
        none_of(below, f"series of {name} below 0")
        return metrics.total(name)

    return look


@verifies("AD-OBS-07", isolation="quiet", waits="stale_reclaim + slack + wait_tolerance")
async def test_the_session_gauge_counts_who_holds_a_slot(admission: Admission) -> None:
    arena, sessions = await admission.instance(), _gauge(admission, SESSIONS)
    start = await admission.sessions_of_others()
    lost, leaving, staying = await admission.characters(3)
    session, socket = await arena.join(lost)
    left, stayed = await arena.admit(leaving), await arena.admit(staying)
    await admission.settles(sessions, start + 3, why="three admitted")
    gone = await admission.lose(socket)
    expect(await sessions(), start + 3, why="a session in grace holds its slot")
    await arena.release(left.session_id, leaving)
    await admission.settles(sessions, start + 2, why="one has left")

    await arena.resume(lost, session, gone=gone)
    await arena.release(session.session_id, lost)
    await arena.release(stayed.session_id, staying)
    await admission.settles(sessions, start, why="all have left")


@verifies("AD-OBS-07", isolation="quiet", waits="stale_reclaim + slack + promote_within")
async def test_the_depth_gauge_follows_the_queue_and_the_peak_stays(admission: Admission) -> None:
    """Nothing is scraped while six wait: a peak that is taken at scrape time would miss them."""
    arena, depth, peak = await admission.instance(capacity=1), _gauge(admission, DEPTH), _gauge(admission, PEAK)
    sessions = _gauge(admission, SESSIONS)
    empty, start, highest = await admission.sessions_of_others(), await depth(), await peak()
    inside = await arena.fill(1)
    line = await arena.line_up(6)
    raised = moment(await arena.put(capacity=7))
    promoted = [(character, (await arena.promoted(character, since=raised))[0]) for character in line]
    await admission.settles(depth, start, why="all have been promoted")

    first, second = await arena.line_up(2)
    with admission.arranging("AD-POLL-01"):
        expect(await arena.status(second), place(1, 2))
    await admission.settles(depth, start + 2, why="as deep as status says")
    await admission.settles(peak, *_peaks(highest, 6), why="the peak is kept")
    for character in (first, second):
        await arena.withdraw(character)
    for character, answer in inside + promoted:
        await arena.release(answer.session_id, character)
    await admission.settles(depth, start, why="all have left the queue")
    await admission.settles(sessions, empty, why="all have left the instance")
    expect(await peak(), *_peaks(highest, 6), why="the peak does not fall")


def _peaks(highest: float, reached: int) -> set[float]:
    """Returns the legal peaks: one over all instances, or the sum of one per instance."""
    return {max(highest, reached), highest + reached}


@verifies("AD-OBS-07", part=2, isolation="quiet", waits="stale_reclaim + grace_reclaim + 2*slack")
async def test_every_node_shows_the_same_gauges_whoever_ended_the_session(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=3)
    a, b, *_ = admission.nodes
    sessions, depth = await _start_on_all_nodes(admission)
    left, lost, replaced, waiting = await admission.characters(4)
    ending = [await arena.admit(character, node=a) for character in (left, lost, replaced)]
    await arena.enqueue(waiting, node=a)
    await _all_show(admission, sessions + 3, depth + 1, "three admitted and one queued through one node")

    await arena.withdraw(waiting, node=b)
    await arena.release(ending[0].session_id, left, node=b)
    socket = await arena.attach(ending[1].session_id, lost, node=b)
    new = await arena.replaced(replaced, node=b)
    dropped = await socket.drop()
    await _all_show(admission, sessions + 2, depth, "one left, one dropped, one replaced through another")
    await arena.release(new.session_id, replaced, node=b)
    await _all_show(admission, sessions + 1, depth, "the replacing session left")
    await _return_to(admission, T, (sessions, depth), T.grace_reclaim, dropped)


async def _on_all_nodes(admission: Admission) -> list[tuple[float, float]]:
    return [(metrics.total(SESSIONS), metrics.total(DEPTH)) for metrics in await admission.metrics_of_all()]


async def _start_on_all_nodes(admission: Admission) -> tuple[float, float]:
    await admission.sessions_of_others()
    first, *others = await _on_all_nodes(admission)
    for other in others:
        expect(_gauges(*other), _gauges(*first), why="every node starts with the same gauges")
    return first


async def _all_show(admission: Admission, sessions: float, depth: float, why: str) -> None:
    async def told() -> str:
        return "; ".join(_gauges(*seen) for seen in await _on_all_nodes(admission))

    wanted = "; ".join([_gauges(sessions, depth)] * len(admission.nodes))
    await admission.settles(told, wanted, why=f"gauges node by node: {why}")


def _gauges(sessions: float, depth: float) -> str:
    return f"{sessions:g} sessions and {depth:g} waiting"


async def _return_to(
    admission: Admission, T: SpecTime, start: tuple[float, float], within: float, since: Moment
) -> None:
    """Waits until all nodes show the start values again; how soon the cleanup comes is judged by other rows."""

    async def back() -> bool:
        return set(await _on_all_nodes(admission)) == {start}

    give_up = within + T.slack + T.prompt_never
    await T.until(back, since=since, give_up=give_up, what="the start values on all nodes", every=T.wait_tolerance)


@verifies("AD-OBS-07", part=3, isolation="disruptive", nodes=2, waits="stale_reclaim_grace + slack")
async def test_a_crash_amid_churn_leaves_no_trace_in_the_gauges(admission: Admission, T: SpecTime) -> None:
    arena, (sessions, depth) = await admission.instance(capacity=4), await _start_on_all_nodes(admission)
    crashing = admission.nodes[0]
    people, newcomers = await admission.characters(4), await admission.characters(8)
    for character in people:
        await arena.join(character, node=crashing)
    line = await arena.line_up(3)
    await _all_show(admission, sessions + len(people), depth + len(line), "before the crash")
    churn = admission.beside(
        admission.parallel([partial(arena.connect, character, node=crashing) for character in newcomers])
    )
    await admission.kill(crashing)
    await churn
    await admission.restart(crashing)
    for character in (*line, *newcomers):
        await arena.unqueue(character)

    await _return_to(admission, T, (sessions, depth), T.stale_reclaim_grace, T.now())
