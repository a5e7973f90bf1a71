"""Ownership (seed §7 Security Considerations): a caller who is not the owner changes nothing and learns nothing."""

from collections.abc import Iterable

from holdfast.check.finding import demand, expect
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.judging import none_of, turned_down
from holdfast.conformance.admission.values import same_id
from holdfast.conformance.admission.wire import done, place, refused, success, turned_away
from holdfast.conformance.shared.monitor import Command
from holdfast.conformance.shared.wire import Request, status

RECORDS = ("session_char", "session_data", "session_instance", "session_reconnect", "queue_pending", "queue_entry")


@verifies("AD-SEC-01", waits="wait_tolerance")
async def test_connecting_a_foreign_character_is_refused_and_changes_nothing(admission: Admission) -> None:
    free, full = await admission.instance(), await admission.instance(capacity=1)
    await full.fill(1)
    idle, idle_before_full, waiting, inside = await admission.characters(4, admission.user())
    await full.enqueue(waiting)
    session, socket = await free.join(inside)

    await _try_as_strangers(admission, [(free, idle), (full, idle_before_full), (full, waiting), (free, inside)])

    expect(await free.status(idle), status(404), why="the owner's idle character after a stranger tried it")
    expect(await full.status(idle_before_full), status(404), why="the same before a full instance")
    expect(await full.status(waiting), place(0), why="the owner's place in line")
    await socket.beat("the owner's session")
    gone = await admission.lose(socket)
    expect(await free.reclaim(inside, session.token, gone=gone), success(session.session_id), why="the owner's token")
    expect(await free.connect(idle), success(), why="the owner may")
    await full.queues(idle_before_full, position=1, why="the owner may")


async def _try_as_strangers(admission: Admission, places: Iterable[tuple[Instance, Character]]) -> None:
    for arena, character in places:
        answer = await arena.connect(character, as_user=admission.stranger())
        expect(answer, refused("CHARACTER_NOT_OWNED"))
        none_of(answer.given("replacementToken"), "replacement token for a stranger")


@verifies("AD-SEC-01", part=2, isolation="quiet")
async def test_no_record_is_written_on_behalf_of_a_stranger(admission: Admission) -> None:
    free, full, keys = await admission.instance(), await admission.instance(capacity=1), admission.keys()
    await full.fill(1)
    idle, idle_before_full, waiting, inside = await admission.characters(4, admission.user())
    await full.enqueue(waiting)
    session = await free.admit(inside)
    places = [(free, idle), (full, idle_before_full), (full, waiting), (free, inside)]

    async with keys.recording() as commands:
        await _try_as_strangers(admission, places)
    async with keys.recording() as control:
        await free.admit(idle)

    writes, roots = await keys.write_commands(), keys.roots(*RECORDS, "replacement")
    ids = [session.session_id, *(character.id for _, character in places)]

    def touching(recorded: Iterable[Command]) -> list[str]:
        # Other writes (limiter, log) are the target's own; those about other characters do not count.
        return [
            " ".join(command.words)
            for command in recorded
            if command.name in writes
            and any(word.startswith(roots) for word in command.words[1:])
            and any(command.mentions(id_) for id_ in ids)
        ]

    with admission.arranging("AD-STATE-01"):
        demand(touching(control), "a write to Redis by the owner's admission", "none was recorded", "control")
    none_of(touching(commands), "write while strangers tried")


@verifies("AD-SEC-02", waits="wait_tolerance")
async def test_a_stolen_reconnection_token_is_refused_and_stays_with_its_owner(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    session, gone = await arena.dropped(character)

    expect(await arena.connect(character, token=session.token, as_user=admission.stranger()), refused())
    foreign = await admission.character()
    expect(await arena.connect(foreign, token=session.token), refused(), why="with a character of the thief's own")
    expect(await arena.reclaim(character, session.token, gone=gone), success(session.session_id), why="the owner")


@verifies("AD-SEC-02", waits="wait_tolerance")
async def test_a_stolen_token_opens_no_socket(admission: Admission) -> None:
    admission.features.require_declared("ws_reconnect")
    arena, character = await admission.instance(), await admission.character()
    session, _ = await arena.dropped(character)
    presented = {"reconnectionToken": session.token, "characterId": character.id}

    for thief in (admission.stranger(), None):
        await turned_down(await arena.try_attach(presented, thief), "a thief's handshake")
    resumed = await arena.try_attach(presented, character.user)
    named = (await resumed.first_frame()).get("sessionId")
    demand(same_id(named, session.session_id), f"session {session.session_id}", str(named), "the owner's handshake")


@verifies("AD-SEC-02")
async def test_a_stolen_replacement_token_is_refused_and_stays_with_its_owner(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    offer = await arena.offer(character)

    expect(await arena.connect(character, replace=offer, as_user=admission.stranger()), refused())
    foreign = await admission.character()
    await arena.admit(foreign)
    expect(await arena.connect(foreign, replace=offer), refused(), why="with a running session of the thief's own")
    await socket.beat("the session that a thief wanted to replace")
    expect(await arena.connect(character, replace=offer), success(), why="the owner")


@verifies("AD-SEC-03")
async def test_nobody_else_ends_a_session_leaves_a_queue_or_cancels_an_offer(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    session, socket = await arena.join(inside)
    await arena.enqueue(waiting)
    offer = await arena.offer(inside)

    for stranger in (admission.stranger(), waiting.user, None):
        await _turned_away(admission, wire.leave(arena.id, session.session_id), stranger)
        if admission.features.has("cancel_replacement"):
            await _turned_away(admission, wire.cancel(arena.id, offer), stranger)
    for stranger in (admission.stranger(), inside.user, None):
        await _turned_away(admission, wire.unqueue(arena.id, waiting.id), stranger)

    await socket.beat("the session that strangers tried to end")
    expect(await arena.status(waiting), place(0), why="the place in line after strangers tried to give it up")
    replaced = await arena.connect(inside, replace=offer)
    expect(replaced, success(), why="the offer after strangers tried to cancel it")
    expect(await arena.unqueue(waiting), done(), why="control: the owner may")
    expect(await arena.status(waiting), status(404))
    expect(await arena.leave(replaced.session_id, inside), done(), why="control: the owner may")


async def _turned_away(admission: Admission, request: Request, stranger: User | None) -> None:
    expect(await admission.call(request, stranger), turned_away())


@verifies("AD-SEC-03")
async def test_nobody_else_attaches_a_socket_to_a_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    session = await arena.admit(character)

    for stranger in (admission.stranger(), None):
        await turned_down(await arena.try_attach({"sessionId": session.session_id}, stranger), "a stranger's socket")
    owners = await arena.attach(session.session_id, character)
    await owners.beat("the owner's socket")


@verifies("AD-SEC-03", waits="promote_within")
async def test_a_promoted_characters_credentials_are_told_to_its_owner_only(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    [(leaving, session)] = await arena.fill(1)
    [promoted] = await arena.line_up(1)
    await arena.release(session.session_id, leaving)
    await arena.promoted(promoted)

    for stranger in (admission.stranger(), leaving.user, None):
        answer = await admission.call(wire.queue_status(arena.id, promoted.id), stranger)
        demand(answer.answered, "an answer", answer.describe(), "a stranger's poll")
        none_of(answer.given("sessionId", "reconnectionToken"), "credential for a stranger", answer.describe())
    mine = await arena.status(promoted)
    with admission.arranging("AD-POLL-05"):
        demand(mine.session_id and mine.token, "session and token", mine.describe(), "control: the owner's poll")
