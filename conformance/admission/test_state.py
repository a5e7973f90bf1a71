"""Data placement (seed §1): what lives in Redis, survives a restart, and belongs to one instance."""

from holdfast.check import verifies
from holdfast.conformance.admission.client import Admission, moment
from holdfast.conformance.admission.wire import locked, queued, refused, success
from holdfast.finding import expect
from holdfast.spectime import SpecTime


@verifies("AD-STATE-01")
async def test_a_success_a_place_in_line_and_a_failure_each_leave_a_redis_record(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    inside, waiting, failing = await admission.characters(3)
    expect(await arena.connect(inside), success())
    expect(await arena.connect(waiting), queued(position=0))
    expect(await arena.fail(failing), refused("VERSION_MISMATCH"))

    assert await keys.ask("EXISTS", keys.name("session_char", inside.id)) == 1, "no session:char record"
    score = await keys.ask("ZSCORE", keys.name("queue_pending", arena.id), waiting.id)
    assert score is not None, "the waiting character is no member of queue:pending"
    expect(await keys.ask("ZCARD", keys.name("ratelimit_window", failing.user.id)), 1, why="records of one failure")


@verifies("AD-STATE-01", part=2)
async def test_a_place_taken_through_one_node_is_seen_through_another(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    a, b, *_ = admission.nodes
    await arena.admit(inside, node=a)
    expect(await arena.connect(waiting, node=a), queued(position=0, depth=1))

    through_a, through_b = await arena.status(waiting, node=a), await arena.status(waiting, node=b)
    expect((through_b.status, through_b.position, through_b.depth), (200, through_a.position, through_a.depth))


@verifies("AD-STATE-02", isolation="disruptive", nodes=2)
async def test_killing_all_nodes_keeps_sessions_order_and_locks(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    inside, unlucky = await admission.characters(2)
    await arena.admit(inside)
    line = await arena.line_up(3)
    for _ in range(T.count("rate_failures")):
        lock = await arena.fail(unlucky)

    for node in admission.deployment.nodes.values():
        await node.kill()
    for node in admission.deployment.nodes.values():
        await node.restart()

    for position, character in enumerate(line):
        expect((await arena.status(character)).position, position, why="place in line after the restart")
    expect(await arena.connect(inside), refused("ALREADY_IN_SESSION"))
    answer = await arena.connect(unlucky)
    T.at_most("rate_lock", since=moment(lock), seen=moment(answer), what="the restart")
    expect(answer, locked())
