"""Queue positions (seed §5 Queue Status Dissemination): with the answer, then by poll, and by push if offered."""

import itertools
import json
import math
from collections.abc import Sequence

from holdfast.check.finding import Finding, NotApplicable, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.limiter import owner_of_count
from holdfast.conformance.admission.sockets import Frame
from holdfast.conformance.admission.values import UUID, same_id, whole
from holdfast.conformance.admission.wire import Answer, place, queued
from holdfast.conformance.shared.wire import moment, status

POLLS = 13
# Rounds of polls: each of three nodes, and the first once more.
ROUNDS = 4


@verifies("AD-POLL-01")
async def test_a_full_instance_tells_the_position_at_once_and_by_poll(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    first = await admission.character()
    answer = await arena.queues(first, position=0)
    none_of(answer.given("sessionId"), "session in a queued answer")
    _shows(await arena.status(first), position=0, depth=1)

    line = [first, *await arena.line_up(6)]
    for position, character in enumerate(line):
        _shows(await arena.status(character), position=position, depth=len(line))


@verifies("AD-POLL-01")
async def test_who_is_not_waiting_has_no_position(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    stranger, waiting = await admission.characters(2)
    expect(await arena.status(stranger), status(404), why="a character that never connected")
    await arena.enqueue(waiting)
    expect(await arena.status(waiting), status(200), why="control: a waiting one is shown")
    await arena.withdraw(waiting)
    expect(await arena.status(waiting), status(404), why="a character that left the queue")


def _shows(answer: Answer, *, position: int, depth: int) -> None:
    expect(answer, place(position, depth), why="a poll")


@verifies("AD-POLL-02")
async def test_the_cadence_is_told_whatever_the_position(admission: Admission, T: SpecTime) -> None:
    if not (field := admission.features.get("poll_after_field")):
        raise NotApplicable("the descriptor declares no poll_after_field")
    arena = await admission.instance(capacity=1)
    await arena.hold()
    waiting = 0
    for wanted in (size for size in (0, 10, 100) if size < T.count("queue_cap")):
        await arena.crowd(wanted - waiting)
        character = await admission.character()
        for answer in (await arena.connect(character), await arena.connect(character)):
            with admission.arranging("AD-POLL-01"):
                expect(answer, queued(position=wanted))
            value, seconds = whole(answer.fields.get(field)), (math.floor(T.poll_interval), math.ceil(T.poll_interval))
            told = isinstance(value, int) and not isinstance(value, bool) and value in {max(1, s) for s in seconds}
            demand(told, f"{field} {seconds[1]}, in whole seconds", json.dumps(value), answer.describe())
        waiting = wanted + 1


@verifies("AD-POLL-03", waits="13*poll_interval")
async def test_polls_are_served_and_cost_neither_the_place_nor_the_allowance(admission: Admission, T: SpecTime) -> None:
    arena, polling, silent = await _two_waiting(admission)
    await _poll(T, arena, polling)

    _shows(await arena.status(silent), position=1, depth=2)
    other = await admission.character(polling.user)
    answer, left = await arena.fail(other), T.count("rate_failures") - 1
    with admission.arranging(owner_of_count(answer, "AD-POLL-03")):
        demand(answer.remaining == left, f"{left} failures left", answer.describe(), "after polls and one failure")


@verifies("AD-POLL-03", part=2, isolation="quiet", waits="13*poll_interval")
async def test_polls_are_no_attempts(admission: Admission, T: SpecTime) -> None:
    arena, polling, _ = await _two_waiting(admission)
    before = await admission.total("connection_attempt_total")
    await _poll(T, arena, polling)

    expect(await admission.total("connection_attempt_total"), before, why="connection_attempt_total after the polls")
    await arena.fail(await admission.character())

    async def counted() -> float:
        return await admission.total("connection_attempt_total")

    await admission.settles(counted, before + 1, why="control: an attempt is counted")


@verifies("AD-POLL-03", part=3, waits="13*poll_interval")
async def test_polls_leave_the_queue_as_it_is(admission: Admission, T: SpecTime) -> None:
    arena, polling, _ = await _two_waiting(admission)
    keys = admission.keys()
    queue = keys.name("queue_pending", arena.id)
    before = await _entries(keys, queue)
    await _poll(T, arena, polling)

    with admission.arranging("AD-QUEUE-01"):
        demand(polling.id in before, "the polling character in queue:pending", before)
    expect(await _entries(keys, queue), before, why="members and scores after the polls")


async def _entries(keys: Keys, queue: str) -> str:
    """Returns the members of a sorted set with their scores, in words."""
    entries = await keys.value(queue)
    return ", ".join(f"{member} at {score:.0f}" for member, score in entries) if isinstance(entries, list) else "nobody"


async def _two_waiting(admission: Admission) -> tuple[Instance, Character, Character]:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    first, second = await arena.line_up(2)
    return arena, first, second


async def _poll(T: SpecTime, arena: Instance, character: Character) -> None:
    start = T.now()
    for count in range(POLLS):
        await T.sleep_until(start, count * T.poll_interval, "the next poll")
        _shows(await arena.status(character), position=0, depth=2)


@verifies("AD-POLL-04", waits="promote_never")
async def test_a_poll_shows_every_promotion_and_leave_before_it(admission: Admission) -> None:
    arena = await admission.instance(capacity=3)
    inside = await arena.fill(3)
    line = await arena.line_up(10)
    fifth, last = line[4], line[-1]
    _shows(await arena.status(fifth), position=4, depth=10)

    for character, answer in inside:
        freed = moment(await arena.release(answer.session_id, character))
    for promoted in line[:3]:
        await arena.promoted(promoted, since=freed)
    _shows(await arena.status(fifth), position=1, depth=7)
    _shows(await arena.status(last), position=6, depth=7)

    await arena.withdraw(line[3])
    _shows(await arena.status(fifth), position=0, depth=6)


@verifies("AD-POLL-04", part=2)
async def test_every_node_shows_a_leave_that_any_node_has_answered(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    await arena.hold()
    *leaving, last = await arena.line_up(len(admission.nodes) + 1)
    for node in admission.nodes:
        _shows(await arena.status(last, node=node), position=len(leaving), depth=len(leaving) + 1)

    places = reversed(range(len(leaving)))
    for position, character, through in zip(places, leaving, admission.nodes, strict=True):
        await arena.withdraw(character, node=through)
        for node in admission.nodes:
            _shows(await arena.status(last, node=node), position=position, depth=position + 1)


@verifies("AD-POLL-04", busy=True, waits="promote_never + recovery")
async def test_no_position_ever_rises(admission: Admission, T: SpecTime) -> None:
    await _churn(admission, T, admission.nodes[:1])


@verifies("AD-POLL-04", part=2, busy=True, waits="promote_never + recovery")
async def test_no_position_ever_rises_on_alternating_nodes(admission: Admission, T: SpecTime) -> None:
    await _churn(admission, T, admission.nodes)


async def _churn(admission: Admission, T: SpecTime, nodes: Sequence[str]) -> None:
    """Changes the line between rounds of polls; each round goes through the next node."""
    arena = await admission.instance(capacity=5)
    held = await admission.parallel([arena.hold] * 5)
    inside = [(each.character, each.answer.session_id) for each in held]
    crowd = await arena.crowd(min(200, T.count("queue_cap") * 2 // 3))
    places: dict[Character, int] = {}
    for node in itertools.islice(itertools.cycle(nodes), ROUNDS):
        polled = await _poll_all(admission, arena, crowd, node)
        promoted = [c for c in crowd if polled[c].state == "admitted"]
        crowd = [c for c in crowd if c not in promoted]
        _none_rose(places, {c: polled[c] for c in crowd}, node)
        inside += [(c, polled[c].session_id) for c in promoted]
        crowd = await _stir(admission, arena, inside, crowd)
        inside.clear()


async def _poll_all(
    admission: Admission, arena: Instance, crowd: Sequence[Character], node: str
) -> dict[Character, Answer]:
    calls = [lambda c=c: arena.status(c, node=node) for c in crowd]
    return dict(zip(crowd, await admission.parallel(calls, at_once=16), strict=True))


def _none_rose(places: dict[Character, int], polled: dict[Character, Answer], node: str) -> None:
    for character, answer in polled.items():
        expect(answer, status(200), why="a waiting character is always shown")
        seen, before = answer.position, places.get(character)
        if seen is None or (before is not None and seen > before):
            legal = "a position" if before is None else f"at most {before}"
            raise Finding([legal], f"{answer.describe()} through node {node}", "the position of one waiting character")
        places[character] = seen


async def _stir(
    admission: Admission, arena: Instance, inside: Sequence[tuple[Character, str]], crowd: list[Character]
) -> list[Character]:
    """Frees slots, lets four leave from anywhere in the line, two others try again and two newcomers join."""
    for character, session in inside:
        await arena.release(session, character)
    leaving = admission.context.random.sample(crowd, 4)
    for character in leaving:
        await arena.unqueue(character)  # not `withdraw`: it may have been promoted meanwhile
    staying = [c for c in crowd if c not in leaving]
    for character in admission.context.random.sample(staying, 2):
        await arena.connect(character)
    return staying + await arena.crowd(2)


@verifies("AD-POLL-05", waits="2*promote_within + poll_interval")
async def test_a_promoted_client_gets_its_session_by_poll_until_it_attaches(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    held = await arena.hold()
    (waiting,) = await arena.line_up(1)
    freed = moment(await arena.release(held.answer.session_id, held.character))

    promoted, seen = await arena.admitted(waiting, within=T.promote_never, since=freed)
    T.at_most("promote_within", since=freed, seen=seen, what="the promotion is shown")
    for name in ("sessionId", "reconnectionToken"):
        said = str(promoted.fields.get(name, "none"))
        demand(UUID.fullmatch(said), f"{name}: a UUID", said, "the poll of a promoted client")
    await _shown_again(arena, waiting, promoted)
    await T.sleep(T.poll_interval, "the next poll, as if the last reply had been lost")
    await _shown_again(arena, waiting, promoted)

    socket = await arena.attach(promoted.session_id, waiting, owner="AD-POLL-05")
    await socket.beat("the promoted client's session")


async def _shown_again(arena: Instance, character: Character, promoted: Answer) -> None:
    again = await arena.status(character)
    same = same_id(again.session_id, promoted.session_id) and same_id(again.token, promoted.token)
    shown = (again.status, again.state) == (200, "admitted") and same
    demand(shown, promoted.describe(), again.describe(), "the same session is shown until a socket attaches")


@verifies("AD-POLL-06", waits="promote_within + prompt")
async def test_pushed_positions_agree_with_polled_ones(admission: Admission) -> None:
    admission.features.require_declared("push")
    arena = await admission.instance(capacity=1)
    await arena.hold()
    ahead, watching = await arena.line_up(2)
    socket = await arena.try_attach({"characterId": watching.id}, watching.user)
    first = await socket.frame("queue_update")
    _pushed(first, position=1, depth=2, why="the first queue_update")
    _shows(await arena.status(watching), position=1, depth=2)

    before = len(socket.frames)
    await arena.withdraw(ahead)
    update = await socket.frame("queue_update", after=before)
    _pushed(update, position=0, depth=1, why="queue_update after the leave ahead")
    _shows(await arena.status(watching), position=0, depth=1)

    await arena.withdraw(watching)
    gone = await arena.status(watching)
    with admission.arranging("AD-QUEUE-08"):
        expect(gone, status(404), why="one who left the line")
    await admission.T.sleep(admission.T.prompt, "what is pushed after the leave")
    told = [frame.data.get("type") for frame in socket.frames if frame.data.get("type") == "queue_promoted"]
    none_of(told, "promotion pushed to one who left the line")


def _pushed(frame: Frame, *, position: int, depth: int, why: str) -> None:
    for name, value in (("position", position), ("depth", depth)):
        expect(whole(frame.data.get(name)), value, why=f"{name} of {why}")
