"""Ownership (seed §7 Security Considerations): a caller who is not the owner changes nothing and learns nothing."""

from collections.abc import Iterable

from holdfast.check.finding import NotApplicable, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.wire import queued, refused, success, turned_away
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
    expect((await full.status(waiting)).position, 0, why="the owner's place in line")
    await socket.beat()
    await admission.lose(socket)
    expect(await free.connect(inside, token=session.token), success(session.session_id))
    expect(await free.connect(idle), success(), why="control: the owner may")
    expect(await full.connect(idle_before_full), queued(position=1), why="control: the owner may")


async def _try_as_strangers(admission: Admission, places: Iterable[tuple[Instance, Character]]) -> None:
    for arena, character in places:
        answer = await arena.connect(character, as_user=admission.user())
        expect(answer, refused("CHARACTER_NOT_OWNED"))
        assert not answer.offer, "a stranger was offered the replacement of a running session"


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
        expect(await free.connect(idle), success())

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

    assert touching(control), "control: the owner's admission should have been recorded as a write"
    expect(touching(commands), [], why="writes while strangers tried")


@verifies("AD-SEC-02", waits="wait_tolerance")
async def test_a_stolen_reconnection_token_is_refused_and_stays_with_its_owner(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    session, socket = await arena.join(character)
    await admission.lose(socket)

    expect(await arena.connect(character, token=session.token, as_user=admission.user()), refused())
    foreign = await admission.character()
    expect(await arena.connect(foreign, token=session.token), refused(), why="with a character of the thief's own")
    expect(await arena.connect(character, token=session.token), success(session.session_id))


@verifies("AD-SEC-02", waits="wait_tolerance")
async def test_a_stolen_token_opens_no_socket(admission: Admission) -> None:
    if not admission.features.get("ws_reconnect"):
        raise NotApplicable("the descriptor declares no reconnect in the WebSocket handshake")
    arena, character = await admission.instance(), await admission.character()
    session, socket = await arena.join(character)
    await admission.lose(socket)
    presented = {"reconnectionToken": session.token, "characterId": character.id}

    for thief in (admission.user(), None):
        stolen = await arena.try_attach(presented, thief)
        assert await stolen.was_refused(), f"a thief's handshake: {stolen.describe()}"
    resumed = await arena.try_attach(presented, character.user)
    expect((await resumed.first_frame()).get("sessionId"), session.session_id, why="the owner's handshake")


@verifies("AD-SEC-02")
async def test_a_stolen_replacement_token_is_refused_and_stays_with_its_owner(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    offer = (await arena.connect(character)).offer
    assert offer, "the owner got no replacement token"

    expect(await arena.connect(character, replace=offer, as_user=admission.user()), refused())
    foreign = await admission.character()
    await arena.admit(foreign)
    expect(await arena.connect(foreign, replace=offer), refused(), why="with a running session of the thief's own")
    await socket.beat()
    expect(await arena.connect(character, replace=offer), success())


@verifies("AD-SEC-03")
async def test_nobody_else_ends_a_session_leaves_a_queue_or_cancels_an_offer(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    session, socket = await arena.join(inside)
    await arena.enqueue(waiting)
    offer = (await arena.connect(inside)).offer

    for stranger in (admission.user(), waiting.user, None):
        await _turned_away(admission, wire.leave(arena.id, session.session_id), stranger)
        if admission.features.get("cancel_replacement", True):
            await _turned_away(admission, wire.cancel(arena.id, offer), stranger)
    for stranger in (admission.user(), inside.user, None):
        await _turned_away(admission, wire.unqueue(arena.id, waiting.id), stranger)

    await socket.beat()
    expect((await arena.status(waiting)).position, 0, why="the place in line after strangers tried to give it up")
    replaced = await arena.connect(inside, replace=offer)
    expect(replaced, success(), why="the offer after strangers tried to cancel it")
    expect(await arena.unqueue(waiting), status(200), why="control: the owner may")
    expect(await arena.status(waiting), status(404))
    expect(await arena.leave(replaced.session_id, inside), status(200), why="control: the owner may")


async def _turned_away(admission: Admission, request: Request, stranger: User | None) -> None:
    expect(await admission.call(request, stranger), turned_away())


@verifies("AD-SEC-03")
async def test_nobody_else_attaches_a_socket_to_a_session(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    session = await arena.admit(character)

    for stranger in (admission.user(), None):
        socket = await arena.try_attach({"sessionId": session.session_id}, stranger)
        assert await socket.was_refused(), f"a stranger's socket: {socket.describe()}"
    owners = await arena.attach(session.session_id, character)
    await owners.beat()


@verifies("AD-SEC-03", waits="promote_within")
async def test_a_promoted_characters_credentials_are_told_to_its_owner_only(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=1)
    [(leaving, session)] = await arena.fill(1)
    [promoted] = await arena.line_up(1)
    await arena.leave(session.session_id, leaving)
    await arena.admitted(promoted, within=T.promote_never)

    for stranger in (admission.user(), leaving.user, None):
        answer = await admission.call(wire.queue_status(arena.id, promoted.id), stranger)
        shown = {"sessionId", "reconnectionToken"} & answer.fields.keys()
        assert answer.answered, f"no answer to a stranger's poll: {answer.text}"
        expect(shown, set(), why=f"what a stranger's poll shows: {answer.describe()}")
    mine = await arena.status(promoted)
    assert mine.session_id and mine.token, f"control: the owner's poll tells both, seen {mine.describe()}"
