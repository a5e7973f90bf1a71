"""Session replacement (seed §7 Security Considerations): offered, confirmed once, cancelled or expired."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from holdfast.check.finding import NotObservable, Unsafe, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.crowds import one_success
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of, turned_down
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.values import UUID, same_id
from holdfast.conformance.admission.wire import client_error, done, locked, place, refused, success
from holdfast.conformance.shared.monitor import Command, changes, members_after
from holdfast.conformance.shared.wire import moment

# A gap between two Redis calls lasts about a millisecond: many confirmations give it many chances to show.
CONFIRMS = 10
# The loser of a race has failed once, and the limiter locks who fails too often: few races per user, several users.
RACES, RACERS = 3, 5


@verifies("AD-REPL-01", waits="poll_interval + wait_tolerance")
async def test_a_further_attempt_gets_an_offer_and_nothing_more(admission: Admission, T: SpecTime) -> None:
    arena, elsewhere = await admission.instance(), await admission.instance()
    character = await admission.character()
    session, socket = await arena.join(character)

    answer = await arena.connect(character)
    expect(answer, refused("ALREADY_IN_SESSION"))
    legal, why = "replacementToken: a UUID", "the owner's further attempt on the same instance"
    demand(UUID.fullmatch(answer.offer), legal, answer.describe(), why)
    abroad = await elsewhere.connect(character)
    expect(abroad, refused("ALREADY_IN_SESSION"))
    none_of(abroad.given("replacementToken"), "offer across instances")

    await T.sleep_until(moment(abroad), T.scaled(5), "what a conflicting attempt might do to the running session")
    await socket.beat("the running session")
    gone = await admission.lose(socket)
    expect(await arena.reclaim(character, session.token, gone=gone), success(session.session_id), why="its token")


@verifies("AD-REPL-02", waits="prompt")
async def test_a_confirmation_ends_the_old_session_and_starts_a_new_one(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    old, old_socket = await arena.join(character)

    new = await arena.connect(character, replace=await arena.offer(character))
    expect(new, success())
    demand(not same_id(new.session_id, old.session_id), "a new sessionId", "the old one")
    demand(new.token, "a new reconnectionToken", "none")
    demand(not same_id(new.token, old.token), "a new reconnectionToken", "the old one")
    closed = await old_socket.closed_by_server(within=T.prompt_never)
    T.at_most("prompt", since=moment(new), seen=closed, what="the close of the old socket")

    again = await arena.try_attach({"sessionId": old.session_id}, character.user)
    await turned_down(again, "a socket on the old session")
    expect(await arena.connect(character, token=old.token), refused(), why="the old reconnection token")
    new_socket = await arena.attach(new.session_id, character, owner="AD-REPL-02")
    await new_socket.beat("the new session")


@verifies("AD-REPL-02", part=2, isolation="quiet", waits="2*prompt")
async def test_the_old_session_goes_and_the_new_one_comes_in_one_step(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    sessions = [(await arena.admit(character)).session_id]
    async with keys.recording() as commands, _sampling(keys, arena, T) as samples:
        await _confirm_often(arena, character, sessions)

    if doubled := [members for members in samples if len(members) > 1]:
        raise Unsafe(["one session of a character at any moment"], " and ".join(doubled[0]))
    steps = await _changes(keys, arena, commands)
    for old, new in itertools.pairwise(sessions):
        together = any(_mentions(step, old) and _mentions(step, new) for step in steps)
        legal = f"removal of {old} and entry of {new} in one script or transaction"
        demand(together, legal, "they are in none together")


async def _changes(keys: Keys, arena: Instance, commands: Sequence[Command]) -> list[list[Command]]:
    """Returns the writes to the instance's set of sessions, grouped by what ran as one step."""
    return changes(commands, await keys.write_commands(), keys.name("session_instance", arena.id))


def _mentions(group: Sequence[Command], session: str) -> bool:
    return any(command.mentions(session) for command in group)


async def _confirm_often(arena: Instance, character: Character, sessions: list[str]) -> None:
    sessions += [(await arena.replaced(character)).session_id for _ in range(CONFIRMS)]


@asynccontextmanager
async def _sampling(keys: Keys, arena: Instance, T: SpecTime) -> AsyncIterator[list[list[str]]]:
    """Reads the instance's set of sessions every few milliseconds during the block."""
    samples = [await keys.members("session_instance", arena.id)]
    enough = asyncio.Event()

    async def look() -> None:
        while not enough.is_set():
            samples.append(await keys.members("session_instance", arena.id))
            await asyncio.sleep(T.redis_hop)

    task = asyncio.ensure_future(look())
    try:
        yield samples
    finally:
        enough.set()  # not cancelled: redis-py may swallow a cancel that comes with an answer
        await task


@verifies("AD-REPL-03", waits="replacement_ttl + slack")
async def test_a_cancelled_offer_confirms_nothing(admission: Admission, T: SpecTime) -> None:
    """On a target without such a call the user cancels by not coming back, and the offer has to expire."""
    arena, character = await admission.instance(), await admission.character()
    held = await arena.hold(character)
    offer = await arena.offer(character)

    if admission.features.has("cancel_replacement"):
        expect(await arena.cancel(offer, character), done())
    else:
        await T.sleep_until(T.now(), T.replacement_ttl + T.slack, "the offer to expire")
    expect(await arena.connect(character, replace=offer), refused(), why="an offer that was cancelled")
    await held.socket.beat("the original session")
    await _a_fresh_offer_works(arena, character)


async def _a_fresh_offer_works(arena: Instance, character: Character) -> None:
    """Raises if a confirmation is refused that nothing speaks against: then the refusal before showed nothing."""
    await arena.replaced(character)


@verifies("AD-REPL-03", waits="replacement_ttl + slack")
async def test_an_unused_offer_expires(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)
    socket.keep_beating(T.heartbeat_interval / 2)
    offer = await arena.offer(character)

    await T.sleep_until(T.now(), T.replacement_ttl + T.slack, "the offer to expire")
    expect(await arena.connect(character, replace=offer), refused(), why="an offer that was left unused")
    await socket.beat("the original session")
    await _a_fresh_offer_works(arena, character)


@verifies("AD-REPL-03", part=2)
async def test_a_replacement_token_is_stored_with_an_expiry(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    await arena.admit(character)
    offer = await arena.offer(character)

    left = await keys.ask("PTTL", keys.name("replacement", offer))
    if left == -2:
        raise NotObservable("[observe] keys.replacement, the name under which offers are stored")
    demand(left > 0, "an expiry of the stored replacement token", f"none (PTTL {left})")
    if left > T.replacement_ttl_max * 1000:
        admission.context.warn(f"replacement_ttl_max: the token lives {left} ms")


@verifies("AD-REPL-04")
async def test_plain_attempts_never_replace_however_often(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)

    for attempt in range(1, 11):
        # Whether a refusal with an offer counts as a failure is open, so the limiter may step in.
        or_locked = [locked()] if attempt > T.count("rate_failures") else []
        expect(await arena.connect(character), refused("ALREADY_IN_SESSION"), *or_locked, why=f"attempt {attempt}")
    await socket.beat("the running session")


@verifies("AD-REPL-04")
async def test_an_unknown_or_malformed_replacement_token_replaces_nothing(admission: Admission) -> None:
    arena = await admission.instance()
    for made_up in (str(uuid.uuid4()), str(uuid.UUID(int=0)), "not-a-uuid", "*"):
        character = await admission.character()
        _, socket = await arena.join(character)
        legal = [refused("INVALID_REPLACE_TOKEN")] if UUID.fullmatch(made_up) else [refused(), client_error()]
        with admission.context.collect():
            expect(await arena.connect(character, replace=made_up), *legal, why=f"replaceToken={made_up}")
            await socket.beat("the running session")


@verifies("AD-REPL-04")
async def test_a_replacement_token_is_for_one_character_and_one_instance(admission: Admission) -> None:
    arena, elsewhere = await admission.instance(), await admission.instance()
    first, second = await admission.characters(2, admission.user())
    sockets = [(await arena.join(character))[1] for character in (first, second)]
    offer = await arena.offer(first)

    expect(await arena.connect(second, replace=offer), refused("INVALID_REPLACE_TOKEN"), why="another character")
    expect(await elsewhere.connect(first, replace=offer), refused(), why="another instance")
    for socket in sockets:
        await socket.beat("the running sessions")
    await _a_fresh_offer_works(arena, first)


@verifies("AD-REPL-04")
async def test_a_replacement_token_works_once(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    await arena.admit(character)
    offer = await arena.offer(character)
    replaced = await arena.connect(character, replace=offer)
    with admission.arranging("AD-REPL-02"):
        expect(replaced, success())
    socket = await arena.attach(replaced.session_id, character)

    expect(await arena.connect(character, replace=offer), refused("INVALID_REPLACE_TOKEN"), why="used before")
    await socket.beat("the session that replaced")


@verifies("AD-REPL-04")
async def test_a_confirmation_passes_the_other_checks_too(admission: Admission) -> None:
    arena, character = await admission.instance(), await admission.character()
    _, socket = await arena.join(character)

    outdated = await arena.connect(character, replace=await arena.offer(character), build="old")
    expect(outdated, refused("VERSION_MISMATCH"))
    await socket.beat("the running session")
    offer = await arena.offer(character)
    await admission.suspend(character)
    expect(await arena.connect(character, replace=offer), refused("CHARACTER_SUSPENDED"))
    await socket.beat("the running session")
    await admission.suspend(character, on=False)
    await _a_fresh_offer_works(arena, character)


@verifies("AD-REPL-05", waits="promote_within")
async def test_a_replacement_needs_no_slot_and_frees_none(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(capacity=1), await admission.character()
    await arena.admit(character)
    [waiting] = await arena.line_up(1)

    replaced = await arena.connect(character, replace=await arena.offer(character))
    expect(replaced, success())
    await _still_first(arena, waiting)
    socket = await arena.attach(replaced.session_id, character)
    await T.sleep_until(moment(replaced), T.promote_within, "a promotion that should not come")
    await _still_first(arena, waiting)
    await socket.beat("the session that replaced")


async def _still_first(arena: Instance, waiting: Character) -> None:
    expect(await arena.status(waiting), place(0), why="the waiting character, which the replaced slot is not for")


@verifies("AD-REPL-05", part=2, isolation="quiet", waits="2*prompt")
async def test_the_count_of_sessions_never_moves_in_a_replacement(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(capacity=1), await admission.character(), admission.keys()
    sessions = [(await arena.admit(character)).session_id]
    [waiting] = await arena.line_up(1)
    async with keys.recording() as commands, _sampling(keys, arena, T) as samples:
        await _confirm_often(arena, character, sessions)

    for sample in samples:
        expect(len(sample), 1, why=f"sessions of the instance, in one of {len(samples)} samples")
    members = set(samples[0])
    for step in await _changes(keys, arena, commands):
        members = members_after(members, step)
        expect(len(members), 1, why=f"sessions of the instance after {'; '.join(each.describe() for each in step)}")
    await _still_first(arena, waiting)


@verifies("AD-REPL-05")
async def test_of_two_parallel_confirmations_one_wins(admission: Admission) -> None:
    for character in await admission.characters(RACERS):
        await _race(admission, character, admission.nodes[:1] * 2)


@verifies("AD-REPL-05", part=3)
async def test_of_two_parallel_confirmations_through_two_nodes_one_wins(admission: Admission) -> None:
    for character in await admission.characters(RACERS):
        await _race(admission, character, admission.nodes[:2])


async def _race(admission: Admission, character: Character, nodes: list[str]) -> None:
    arena = await admission.instance(capacity=1)
    sessions = [(await arena.admit(character)).session_id]
    sessions.append((await arena.replaced(character)).session_id)  # control: a single confirmation wins
    for _ in range(RACES):
        offers = [await arena.offer(character), await arena.offer(character)]
        calls = [
            partial(arena.connect, character, replace=offer, node=node)
            for offer, node in zip(offers, nodes, strict=True)
        ]
        answers = await admission.burst(calls, nodes=sorted(set(nodes)))
        winner = one_success(answers, "two confirmations at once", refusals=None)
        for past in sessions:
            await turned_down(
                await arena.try_attach({"sessionId": past}, character.user), "a session that was replaced"
            )
        sessions.append(winner.session_id)
    socket = await arena.attach(sessions[-1], character)
    await socket.beat("the session of the winner")
