"""Data placement (seed §1): what lives in Redis, survives a restart, and belongs to one instance."""

import socket
from functools import partial

from holdfast.check.finding import Finding, Inconclusive, NotApplicable, NotObservable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, outcomes, tally
from holdfast.conformance.admission.wire import done, locked, place, refused, success
from holdfast.target.deployment import Sink


@verifies("AD-STATE-01")
async def test_a_success_a_place_in_line_and_a_failure_each_leave_a_redis_record(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    inside, waiting, failing = await admission.characters(3)
    await arena.admit(inside)
    await arena.enqueue(waiting)
    with admission.arranging("AD-VER-01"):
        expect(await arena.fail(failing), refused("VERSION_MISMATCH"))

    marker = await keys.ask("EXISTS", keys.name("session_char", inside.id))
    demand(marker == 1, "a session:char record", "none", "of a character in session")
    score = await keys.ask("ZSCORE", keys.name("queue_pending", arena.id), waiting.id)
    demand(score is not None, "a member of queue:pending", "none", "of a waiting character")
    expect(await keys.ask("ZCARD", keys.name("ratelimit_window", failing.user.id)), 1, why="records of one failure")


@verifies("AD-STATE-01", part=2)
async def test_a_place_taken_through_one_node_is_seen_through_another(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    a, b, *_ = admission.nodes
    await arena.admit(inside, node=a)
    await arena.enqueue(waiting, node=a)

    through_a, through_b = await arena.status(waiting, node=a), await arena.status(waiting, node=b)
    with admission.arranging("AD-POLL-01"):
        expect(through_a, place(0, 1), why="through the node that it came to")
    expect(through_b, place(0, 1), why="through another node")


@verifies("AD-STATE-02", isolation="disruptive", nodes=2)
async def test_killing_all_nodes_keeps_sessions_order_and_locks(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    inside, unlucky = await admission.characters(2)
    held = await arena.hold(inside)
    line = await arena.line_up(3)
    lock = await arena.lock(unlucky)
    with admission.arranging("AD-STALE-02"):
        await held.socket.beat()
    alive = T.now()

    for node in admission.nodes:
        await admission.kill(node)
    for node in admission.nodes:
        await admission.restart(node)

    polls = [await arena.status(character) for character in line]
    again, last = await arena.connect(inside), await arena.connect(unlucky)
    if last.received > min(alive.lo + T.stale_limit, lock.sent + T.rate_lock):
        raise Inconclusive("the restart took as long as a session may be silent, or as the lock lasts")
    for position, poll in enumerate(polls):
        expect(poll, place(position), why="a place in line after the restart")
    expect(again, refused("ALREADY_IN_SESSION"), why="a session after the restart")
    expect(last, locked(), why="a lock after the restart")


@verifies("AD-STATE-03", isolation="disruptive", waits="promote_never + wait_tolerance")
async def test_the_whole_cycle_works_while_the_database_refuses(admission: Admission, T: SpecTime) -> None:
    if "database" not in admission.context.target.settings:
        raise NotApplicable("the descriptor declares no setting for a database")
    if not admission.context.target.startable:
        raise NotObservable("[[node]] start, so that a node can be given another database")
    for node in admission.nodes:
        await admission.restart(node, database=_refusing_database(admission))
    arena = await admission.instance(capacity=1)
    first, second = await admission.characters(2)

    session = await arena.admit(first)
    await arena.queues(second, position=0)
    expect(await arena.leave(session.session_id, first), done())
    promoted, _ = await arena.admitted(second, within=T.promote_never)
    await admission.lose(await arena.attach(promoted.session_id, second))
    expect(await arena.connect(second, token=promoted.token), success(promoted.session_id))


def _refusing_database(admission: Admission) -> str:
    """Returns a database URL that refuses for certain: its port is bound, but nothing listens."""
    port = socket.socket()
    port.bind(("127.0.0.1", 0))
    admission.context.stack.callback(port.close)
    return f"postgresql://127.0.0.1:{port.getsockname()[1]}/admission"


@verifies(
    "AD-STATE-03",
    part=2,
    isolation="quiet",
    waits="prompt_never + attempt_deadline + 3*prompt",
    settings={"audit_sink": "{sink}"},
)
async def test_a_paused_audit_sink_changes_neither_outcome_nor_latency(admission: Admission, T: SpecTime) -> None:
    arena, sink = await admission.instance(capacity=11), await admission.deployment.sink()
    first, *people = await admission.characters(21)
    await arena.admit(first)
    await _events_arrive(sink, T)

    await sink.pause()
    connects = admission.beside(admission.parallel([partial(arena.connect, each) for each in people]))

    async def all_answered() -> bool:
        return connects.done()

    decided = T.attempt_deadline + 3 * T.prompt
    await T.until(all_answered, give_up=decided, what="every answer while the sink is paused")
    answers = connects.result()
    expect(tally(outcomes(answers)), tally({"success": 10, "queued": 10}), why="20 connects for 10 free slots")
    slowest = max(answers, key=lambda answer: answer.received - answer.sent)
    sent = Moment(slowest.sent, slowest.sent)
    T.at_most("prompt", since=sent, seen=Moment(slowest.received, slowest.received), what="the slowest answer")


async def _events_arrive(sink: Sink, T: SpecTime) -> None:
    """Raises Inconclusive unless events arrive: pausing a sink that nobody writes to would show nothing."""

    async def something() -> bool:
        return bool(sink.log_lines())

    try:
        await T.until(something, give_up=T.prompt_never, what="an event in the audit sink")
    except Finding as nothing:
        raise Inconclusive(f"the audit sink is not in use: {nothing}") from nothing


@verifies("AD-STATE-04")
async def test_a_full_instance_with_a_line_leaves_another_one_alone(admission: Admission) -> None:
    full, free = await admission.instance(capacity=1), await admission.instance(capacity=1)
    inside, first, second = await admission.characters(3)
    await full.admit(inside)
    line = await full.line_up(3)

    expect(await free.connect(first), success(), why="another instance has a free slot")
    await free.queues(second, position=0, why="another instance has a line of its own")
    expect(await free.status(second), place(0, 1), why="another instance has a line of its own")
    for position, character in enumerate(line):
        expect(await full.status(character), place(position, 3), why="the other line is unchanged")
