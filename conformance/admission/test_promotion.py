"""Promotion (seed §10 Queue Implementation Details, §8): a freed slot goes to the first in line who may have it."""

from collections import deque

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import served
from holdfast.conformance.admission.wire import place, refused, success
from holdfast.conformance.shared.wire import moment, status

LINE = 20
PEOPLE, WORKERS, STEPS = 12, 4, 25


@verifies("AD-QUEUE-10", waits="promote_within")
async def test_a_leave_promotes_the_first_in_line_without_a_request(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    inside = await arena.hold()
    first, *behind = await arena.line_up(3)
    left = await arena.release(inside.answer.session_id, inside.character)
    answer, seen = await arena.admitted(first, within=T.promote_never, since=moment(left))

    T.at_most("promote_within", since=moment(left), seen=seen, what="the promotion")
    for position, character in enumerate(behind):
        expect(await arena.status(character), place(position, 2), why="place and depth after the promotion")
    socket = await arena.attach(answer.session_id, first, owner="AD-QUEUE-10")
    await served(socket, "the session of the promoted character")


@verifies("AD-QUEUE-10", busy=True, waits="promote_within + 5*prompt")
async def test_slots_freed_one_by_one_go_out_in_order_of_arrival(admission: Admission, T: SpecTime) -> None:
    await _promote_all(admission, T)


@verifies("AD-QUEUE-10", part=2, isolation="quiet", busy=True, waits="promote_within + 5*prompt")
async def test_the_events_of_promotions_stand_in_order_of_arrival(admission: Admission, T: SpecTime) -> None:
    arena, line = await _promote_all(admission, T)
    ids = [character.id for character in line]

    async def announced() -> list[str] | None:
        events = admission.events(event="connection.admitted", instanceId=arena.id)
        announced_ids = [str(event["characterId"]) for event in events if event.get("characterId") in ids]
        return announced_ids if len(announced_ids) >= len(ids) else None

    with admission.arranging("AD-OBS-03"):
        order, _ = await T.until(announced, give_up=T.prompt_never, what="connection.admitted of everyone in line")
    expect(", ".join(order), ", ".join(ids), why="order of connection.admitted")


async def _promote_all(admission: Admission, T: SpecTime) -> tuple[Instance, list[Character]]:
    """Promotes the whole line one by one; each opens its socket, so that none goes stale meanwhile."""
    arena = await admission.instance(capacity=2)
    inside = deque([await arena.hold() for _ in range(2)])
    line = await arena.line_up(LINE)
    for turn, character in enumerate(line):
        leaver = inside.popleft()
        await arena.release(leaver.answer.session_id, leaver.character)
        promoted, _ = await arena.admitted(character, within=T.promote_never)
        inside.append(await arena.keep(character, promoted))
        for position, waiting in enumerate(line[turn + 1 : turn + 3]):
            expect(await arena.status(waiting), place(position), why="the next in line still waits")
    return arena, line


@verifies("AD-QUEUE-10", waits="grace_promote")
async def test_an_expired_grace_promotes_the_first_in_line(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    _, socket = await arena.join(await admission.character())
    first, second = await arena.line_up(2)
    dropped = await socket.drop()
    await T.sleep_until(dropped, T.grace, "the grace of the dropped session")
    _, seen = await arena.admitted(first, within=T.grace_reclaim + T.promote_never, since=dropped)

    T.at_most("grace_promote", since=dropped, seen=seen, what="the promotion")
    expect(await arena.status(second), place(0), why="the next in line")


@verifies("AD-QUEUE-10", waits="stale_promote + grace")
async def test_a_session_gone_silent_makes_room_for_the_first_in_line(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    _, socket = await arena.join(await admission.character())
    first, second = await arena.line_up(2)
    with admission.arranging("AD-STALE-02"):
        await socket.beat()
    silent = T.now()
    through_grace = bool(admission.features.get("stale_via_grace"))
    reclaim = T.stale_reclaim_grace if through_grace else T.stale_reclaim
    await T.sleep_until(silent, T.stale_limit, "the session to become stale")
    _, seen = await arena.admitted(first, within=reclaim + T.promote_never, since=silent)

    detour = "grace" if through_grace else None
    T.at_most("stale_promote", since=silent, seen=seen, tolerance=detour, what="the promotion")
    expect(await arena.status(second), place(0), why="the next in line")


@verifies("AD-QUEUE-12", waits="promote_within")
async def test_who_has_a_session_elsewhere_is_passed_over(admission: Admission, T: SpecTime) -> None:
    arena, elsewhere = await admission.instance(capacity=1), await admission.instance()
    inside = await arena.hold()
    busy, waiting, last = await arena.line_up(3)
    held = await elsewhere.hold(busy)
    await arena.release(inside.answer.session_id, inside.character)
    await _passes_over(arena, busy, waiting, T)

    expect(await arena.status(busy), status(404), why="it has its session on the other instance")
    expect(await arena.status(last), place(0), why="the one behind")
    expect(await arena.connect(busy), refused("ALREADY_IN_SESSION"))
    await served(held.socket, "the session on the other instance")


@verifies("AD-QUEUE-12", waits="promote_within")
async def test_who_was_suspended_while_waiting_is_passed_over(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    inside = await arena.hold()
    suspended, waiting, last = await arena.line_up(3)
    await admission.suspend(suspended)
    await arena.release(inside.answer.session_id, inside.character)
    await _passes_over(arena, suspended, waiting, T)

    expect(await arena.status(suspended), status(404))
    expect(await arena.status(last), place(0), why="the one behind")
    await admission.suspend(suspended, on=False)
    free = await admission.instance()
    expect(await free.connect(suspended), success(), why="control: the suspension left no session behind")


async def _passes_over(arena: Instance, unfit: Character, waiting: Character, T: SpecTime) -> None:
    """Waits until the next one is promoted. Raises Finding at once if the one who may not have the slot is."""

    async def look() -> bool:
        expect((await arena.status(unfit)).state, "queued", why="the one who may not have the slot")
        return (await arena.status(waiting)).state == "admitted"

    await T.until(look, give_up=T.promote_never, what="the promotion of the next in line")


@verifies("AD-QUEUE-12", part=2, busy=True, waits="promote_within + 5*prompt")
async def test_after_a_churn_nobody_both_waits_and_is_in_session(admission: Admission, T: SpecTime) -> None:
    """Some who wait get a session elsewhere. At the end there is room for all, so promotion reaches every entry."""
    arenas = [await admission.instance(capacity=places) for places in (1, 1, PEOPLE)]
    for full in arenas[:2]:
        await full.fill(1)
    people, keys = await admission.characters(PEOPLE), admission.keys()
    waited = sum(await admission.parallel([lambda: _churn(admission, arenas, people)] * WORKERS))
    for arena in arenas:
        await arena.put(capacity=PEOPLE)
    queues = [("ZRANGE", keys.name("queue_pending", arena.id), "0", "-1") for arena in arenas]
    markers = ("MGET", *(keys.name("session_char", character.id) for character in people))

    async def apart() -> set[str] | None:
        *lines, marked = await keys.together(*queues, markers)
        holders = {character.id for character, session in zip(people, marked, strict=True) if session}
        return None if holders & {member for line in lines for member in line} else holders

    holders, _ = await T.until(apart, give_up=T.promote_never, what="the end of entries whose character has a session")
    if not holders or not waited:
        raise Inconclusive(f"{len(holders)} in session and {waited} placed in line: one of either is needed")


async def _churn(admission: Admission, arenas: list[Instance], people: list[Character]) -> int:
    """Connects, leaves and unqueues at random; other checks judge the answers. Returns how often one had to wait."""
    draw, waited = admission.context.random, 0
    for _ in range(STEPS):
        arena, character = draw.choice(arenas), draw.choice(people)
        match draw.choice(("connect", "connect", "leave", "unqueue")):
            case "connect":
                answer = await arena.connect(character)
                waited += answer.outcome == "queued"
                if answer.outcome == "success" and draw.random() < 0.5:
                    await arena.leave(answer.session_id, character)
                elif answer.outcome == "success":
                    (await arena.attach(answer.session_id, character)).keep_beating(admission.T.heartbeat_interval / 3)
            case "leave":
                answer = await arena.status(character)
                if answer.state == "admitted":
                    await arena.leave(answer.session_id, character)
            case _:
                await arena.unqueue(character)
    return waited
