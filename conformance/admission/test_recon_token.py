"""The reconnection token: random, bound, short-lived, single-use (seed §2 Reconnection Mechanism, §7)."""

import itertools
import uuid
from functools import partial

from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.crowds import one_success
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.values import UUID4, epoch_ms, same_id
from holdfast.conformance.admission.wire import Answer, client_error, refused, success
from holdfast.conformance.shared.wire import moment

Admitted = tuple[Character, Answer]

# A broken target may pass one race by chance, but seldom two.
RIVALS, RACES = 20, 2
MALFORMED = "x"


@verifies("AD-RECON-01", busy=True, waits="promote_never")
async def test_a_hundred_admissions_hand_out_a_hundred_random_tokens(admission: Admission) -> None:
    arena, busy = await admission.instance(room=40), await admission.instance(capacity=20)
    fresh = await arena.fill(20)
    replaced, replacing = zip(*await admission.parallel([partial(_replace, arena)] * 20), strict=True)
    leaving, promoted = await _promote(busy, 20)
    admitted = {"direct": [*fresh, *replaced, *leaving], "replacing": replacing, "promoted": promoted}

    for kind, people in admitted.items():
        for _, answer in people:
            demand(
                UUID4.fullmatch(answer.token),
                "reconnectionToken: a version-4 UUID",
                answer.describe(),
                f"{kind} session",
            )
    everybody = list(itertools.chain(*admitted.values()))
    tokens = {answer.token.lower() for _, answer in everybody}
    expect(len(tokens), len(everybody), why="distinct tokens")
    identifiers = {name.lower() for character, answer in everybody for name in _identifiers(character, answer)}
    none_of(sorted(tokens & identifiers), "token that is the id of a session, a character or a user")


async def _replace(arena: Instance) -> tuple[Admitted, Admitted]:
    """Admits one character twice: directly, and then in place of its own session; returns both."""
    character = await arena.admission.character()
    first = await arena.admit(character)
    return (character, first), (character, await arena.replaced(character))


async def _promote(arena: Instance, count: int) -> tuple[list[Admitted], list[Admitted]]:
    """Admits `count` characters who leave again, and returns them and those promoted in their place."""
    leaving, line = await arena.fill(count), await arena.line_up(count)
    await arena.admission.parallel([partial(arena.release, answer.session_id, each) for each, answer in leaving])
    watches = [partial(arena.promoted, character) for character in line]
    answers = [answer for answer, _ in await arena.admission.parallel(watches)]
    return leaving, list(zip(line, answers, strict=True))


def _identifiers(character: Character, answer: Answer) -> tuple[str, ...]:
    return answer.session_id, character.id, character.user.id, character.user.id.removeprefix("u-")


@verifies("AD-RECON-01", part=2, waits="prompt_never")
async def test_the_stored_token_names_character_instance_and_expiry(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    session, socket = await arena.join(character)
    gone = await socket.drop()

    async def with_expiry() -> dict[str, object] | None:
        record = await keys.record(keys.name("session_reconnect", session.token))
        return record if "expiresAt" in record else None

    record, _ = await T.until(with_expiry, give_up=T.prompt_never, what="an expiry in the stored token")
    for name, value in (("characterId", character.id), ("instanceId", arena.id)):
        demand(same_id(record.get(name), value), f"{name} {value}", str(record.get(name)), "what the token is bound to")
    stamp = epoch_ms(record["expiresAt"])
    if stamp is None:
        raise Finding(["expiresAt: a time"], str(record["expiresAt"]))
    end = await keys.at(stamp)
    T.at_least("token_ttl", since=gone, seen=end, tolerance="slack", what="the stored life of the token")
    T.at_most("token_ttl", since=gone, seen=end, tolerance="slack", what="the stored life of the token")


@verifies("AD-RECON-04", waits="token_ttl + janitor_interval + slack + prompt")
async def test_a_token_is_dead_after_its_life_whenever_the_cleanup_runs(admission: Admission, T: SpecTime) -> None:
    """Drops are spread over one cleanup interval, so that few tokens can expire just when a cleanup runs."""
    arena, people = await admission.instance(), await admission.characters(10)
    delays = [number * T.janitor_interval / len(people) for number in range(len(people))]
    presented = await admission.parallel(
        [partial(_present_too_late, arena, each, T, delay) for each, delay in zip(people, delays, strict=True)]
    )
    for gone, answer in presented:
        _expect_dead(T, gone, answer)


async def _present_too_late(arena: Instance, character: Character, T: SpecTime, delay: float) -> tuple[Moment, Answer]:
    await T.sleep(delay, "this drop's turn in the cleanup interval")
    session, gone = await arena.dropped(character)
    return gone, await _after_its_life(arena, character, session.token, gone, T)


async def _after_its_life(arena: Instance, character: Character, token: str, gone: Moment, T: SpecTime) -> Answer:
    """Presents the token after its life, which begins when the target notices the drop, a moment late."""
    await T.sleep_until(gone, T.token_ttl + max(T.slack, T.prompt), "the end of the token's life")
    return await arena.connect(character, token=token)


def _expect_dead(T: SpecTime, gone: Moment, answer: Answer) -> None:
    if answer.outcome == "success":
        T.at_most("token_ttl", since=gone, seen=moment(answer), what="the life of the token")
    expect(answer, refused())
    none_of(answer.given("sessionId"), "session for a token that is refused")


@verifies("AD-RECON-04", waits="1.2*token_ttl")
async def test_the_life_of_a_token_does_not_run_while_the_socket_lives(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    session, socket = await arena.join(character)
    socket.keep_beating(T.heartbeat_interval / 2)
    await T.sleep_until(moment(session), 13 / 12 * T.token_ttl, "a session older than a token's life")
    gone = await socket.drop()
    await T.sleep_until(gone, T.token_ttl / 12, "a while in grace")

    expect(await arena.reclaim(character, session.token, gone=gone), success(session.session_id))


@verifies("AD-RECON-04", part=2, waits="token_ttl + slack + prompt_never")
async def test_the_stored_token_expires_by_itself(admission: Admission, T: SpecTime) -> None:
    arena, character, keys = await admission.instance(), await admission.character(), admission.keys()
    session, socket = await arena.join(character)
    key = keys.name("session_reconnect", session.token)
    with admission.arranging("AD-RECON-01"):
        expect(await keys.ask("EXISTS", key), 1, why="control: the token is stored while the socket lives")
    gone = await socket.drop()

    async def end_told() -> Moment | None:
        asked = T.now()
        left = float(await keys.ask("PTTL", key)) / 1000
        return Moment(asked.lo + left, T.now().hi + left) if left > 0 else None

    end, _ = await T.until(end_told, give_up=T.prompt_never, what="a TTL of the stored token")
    T.at_most("token_ttl", since=gone, seen=end, tolerance="slack", what="the TTL of the stored token")
    await T.sleep_until(end, T.wait_tolerance, "the end of the TTL that Redis showed")
    expect(await keys.ask("EXISTS", key), 0, why="the stored token after its life")


@verifies("AD-RECON-05", waits="2/3*token_ttl")
async def test_a_token_presented_wrongly_is_refused_and_stays_usable(admission: Admission, T: SpecTime) -> None:
    arena, owner, token, session, gone = await _presented_wrongly(admission, T)
    await T.sleep_until(gone, 2 / 3 * T.token_ttl, "a rightful presentation after the wrong ones")
    expect(
        await arena.reclaim(owner, token, gone=gone), success(session), why="control: the right character and instance"
    )


@verifies("AD-RECON-05", waits="7/6*token_ttl + slack + prompt")
async def test_a_wrong_presentation_does_not_renew_the_token(admission: Admission, T: SpecTime) -> None:
    arena, owner, token, _, gone = await _presented_wrongly(admission, T)
    await T.sleep_until(gone, 7 / 6 * T.token_ttl, "a time that only a renewed token lives to see")
    _expect_dead(T, gone, await _after_its_life(arena, owner, token, gone, T))


async def _presented_wrongly(admission: Admission, T: SpecTime) -> tuple[Instance, Character, str, str, Moment]:
    """Returns a dropped session whose token was presented by others and refused, a third of its life after the drop."""
    arena, elsewhere = await admission.instance(), await admission.instance()
    stranger, owner = await admission.characters(2)
    sibling = await admission.character(owner.user)
    session, gone = await arena.dropped(owner)
    await T.sleep_until(gone, T.token_ttl / 3, "a third of the token's life")
    expect(await arena.connect(sibling, token=session.token), refused(), why="another character of the same user")
    expect(await arena.connect(stranger, token=session.token), refused(), why="a character of another user")
    expect(await elsewhere.connect(owner, token=session.token), refused(), why="another instance")
    return arena, owner, session.token, session.session_id, gone


@verifies("AD-RECON-06", waits="wait_tolerance")
async def test_in_grace_the_owner_is_refused_everywhere_without_the_token(admission: Admission) -> None:
    arena, elsewhere, owner = await admission.instance(), await admission.instance(), await admission.character()
    session, gone = await arena.dropped(owner)

    expect(await arena.connect(owner), refused("ALREADY_IN_SESSION"))
    expect(await elsewhere.connect(owner), refused("ALREADY_IN_SESSION"))
    expect(await arena.reclaim(owner, session.token, gone=gone), success(session.session_id), why="control: its token")


@verifies("AD-RECON-06", waits="wait_tolerance")
async def test_a_malformed_or_unknown_token_resumes_nothing(admission: Admission) -> None:
    arena, owner = await admission.instance(), await admission.character()
    session, gone = await arena.dropped(owner)

    expect(await arena.connect(owner, token=MALFORMED), refused(), client_error())
    expect(await arena.connect(owner, token=str(uuid.uuid4())), refused())
    expect(await arena.reclaim(owner, session.token, gone=gone), success(session.session_id), why="control: its token")


@verifies("AD-RECON-06")
async def test_a_malformed_or_unknown_token_is_no_ordinary_admission(admission: Admission) -> None:
    arena, newcomer = await admission.instance(), await admission.character()

    expect(await arena.connect(newcomer, token=MALFORMED), refused(), client_error())
    expect(await arena.connect(newcomer, token=str(uuid.uuid4())), refused())
    expect(await arena.connect(newcomer), success(), why="no session was there, and none was in the way")


@verifies("AD-RECON-07", waits="5/3*token_ttl + wait_tolerance")
async def test_a_used_token_is_dead_and_its_successor_has_a_full_life(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()
    first, gone = await arena.dropped(character)
    await T.sleep_until(gone, 5 / 6 * T.token_ttl, "most of the first token's life")
    second = await arena.reclaim(character, first.token, gone=gone)
    with admission.arranging("AD-RECON-03"):
        expect(second, success(first.session_id))
    demand(UUID4.fullmatch(second.token), "a fresh reconnectionToken", second.describe(), "the reconnect")
    demand(not same_id(second.token, first.token), "a fresh reconnectionToken", "the used one", "the reconnect")

    socket = await arena.attach(first.session_id, character)
    expect(await arena.connect(character, token=first.token), refused(), why="the used token, socket open")
    demand(socket.open_now, "the socket open", socket.describe(), "after its used token was refused")
    gone = await admission.lose(socket)
    expect(await arena.connect(character, token=first.token), refused(), why="the used token, socket lost")

    await T.sleep_until(gone, 5 / 6 * T.token_ttl, "most of the second token's life")
    expect(await arena.reclaim(character, second.token, gone=gone), success(first.session_id))


@verifies("AD-RECON-07", waits="2*prompt")
async def test_one_of_many_presentations_at_once_succeeds(admission: Admission, T: SpecTime) -> None:
    for _ in range(RACES):
        await _one_of_many(admission, T, admission.nodes[:1])


@verifies("AD-RECON-07", part=2, waits="2*prompt")
async def test_one_of_many_presentations_over_all_nodes_succeeds(admission: Admission, T: SpecTime) -> None:
    for _ in range(RACES):
        await _one_of_many(admission, T, admission.nodes)


async def _one_of_many(admission: Admission, T: SpecTime, nodes: list[str]) -> None:
    arena, character = await admission.instance(), await admission.character()
    session, gone = await arena.dropped(character)
    await T.sleep_until(gone, T.prompt, "the target to notice the drop for certain")
    chosen = list(itertools.islice(itertools.cycle(nodes), RIVALS))
    rivals = [partial(arena.connect, character, token=session.token, node=node) for node in chosen]
    answers = await admission.burst(rivals, nodes=nodes)

    winner = one_success(answers, f"{RIVALS} presentations of one token", refusals=None)
    expect(winner, success(session.session_id))
