"""The migration flag (seed 4 and 5.1 phase 1): with it on the API takes the channel's lease, and a held one is 409."""

from collections.abc import Mapping
from functools import partial

from holdfast.check.finding import NotApplicable, demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, PHASE_2, Intents, Session
from holdfast.conformance.intents.keys import Lease
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted, shown
from holdfast.conformance.shared.wire import moment, status

REPLICAS = {"api": 2, "worker": 1}


# --- a held channel


@verifies("IN-PHASE-01", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_a_held_channel_is_a_conflict_with_the_flag_on(intents: Intents) -> None:
    await _conflicts(intents)


@verifies("IN-PHASE-01", isolation="disruptive", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up + api_ready")
async def test_a_held_channel_is_a_conflict_without_the_flag(intents: Intents) -> None:
    await intents.restart(intents.apis[0], unset="api_leases")
    await _conflicts(intents)


async def _conflicts(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    expect(await intents.start(holder.target, second), status(409), why="a start of a channel that is held")


@verifies("IN-PHASE-01", part=2, isolation="disruptive", nodes=ONE_OF_EACH, settings=PHASE_1, waits="start_ready")
async def test_the_api_itself_takes_the_channel(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    await intents.pause_workers()
    holder = await intents.begin(profile=first)
    expect(await intents.start(holder.target, second), status(409), why="another start while no worker runs")


@verifies("IN-PHASE-01", part=3, isolation="disruptive", nodes=ONE_OF_EACH, settings=PHASE_1, waits="start_ready")
async def test_the_lease_is_there_with_the_answer(intents: Intents) -> None:
    await intents.pause_workers()
    session = await intents.begin()
    key = intents.store.service(session.target)
    expect((await intents.store.lease(key)).owner, session.id, why=f"owner of {key} as soon as the 202 was read")


# --- identical starts


@verifies("IN-PHASE-02", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up + 4*start_ready")
async def test_of_two_identical_starts_at_once_one_is_a_conflict(intents: Intents, T: SpecTime) -> None:
    await _pairs(intents, T)


@verifies(
    "IN-PHASE-02",
    isolation="quiet",
    nodes=REPLICAS,
    needs=["multi_node"],
    settings=PHASE_1,
    waits="give_up + 4*start_ready",
)
async def test_of_two_identical_starts_on_two_replicas_one_is_a_conflict(intents: Intents, T: SpecTime) -> None:
    await _pairs(intents, T)


async def _pairs(intents: Intents, T: SpecTime) -> None:
    await intents.rounds([partial(_pair, intents, T)] * T.count("phase1_rounds"))


async def _pair(intents: Intents, T: SpecTime) -> None:
    """Starts a fresh channel twice at once, on all APIs by turns; judges both answers and ends the session."""
    ref, apis = intents.channel(), intents.apis
    nodes = [apis[number % len(apis)] for number in range(T.count("herd_pair"))]
    answers = await intents.burst([partial(intents.start, ref, node=node) for node in nodes], nodes=apis)
    expect(sorted(answer.status for answer in answers), [202, 409], why="two identical starts at once in phase 1")
    taken = next(answer for answer in answers if answer.status == 202)
    session = Session(taken.session_id, ref, None, taken)
    await intents.ready(session)
    await intents.stopped(session)


@verifies("IN-PHASE-02", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up + repeat_soon")
async def test_an_identical_start_is_a_conflict_while_the_channel_is_held(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    await T.sleep_until(session.accepted, T.repeat_soon, "the same start again")
    expect(await intents.start(session.target), status(409), why="the same start while the channel is held")
    expect(await intents.poll(session), shown(*intents.running_states), why="the session after the conflict")


# --- the lease that the API took, in the hands of the worker


@verifies("IN-PHASE-03", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_the_worker_runs_what_the_api_took_the_channel_for(intents: Intents) -> None:
    await intents.ready(await intents.begin(), owner="IN-PHASE-03")


@verifies("IN-PHASE-03", part=2, isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_api_and_worker_mean_the_same_lease(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    ref, began = f"{intents.channel().lower().rstrip(':')}:", T.now()
    session = await intents.begin(ref)
    await intents.ready(session, owner="IN-PHASE-03")
    key = intents.store.service(ref)
    expect((await intents.store.lease(key)).owner, session.id, why=f"owner of {key}")
    seen = {event.key for event in await keys.events(f"{intents.store.roots('service')[0]}*", since=began)}
    demand(seen <= {key}, f"no service lease but {key}", plain(sorted(seen)), "one start")


@verifies(
    "IN-PHASE-03",
    part=3,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="give_up + half_ttl + refresh_within",
)
async def test_the_worker_sets_the_expiry_back(intents: Intents, T: SpecTime) -> None:
    await intents.pause_workers()
    session = await intents.begin()
    key = intents.store.service(session.target)

    async def half_gone() -> bool:
        return 0 < ((await intents.store.lease(key)).left or 0) < T.half_ttl

    async def refreshed() -> bool:
        return ((await intents.store.lease(key)).left or 0) > T.refreshed_pttl

    with intents.context.arranging("IN-PHASE-01"):
        await T.until(half_gone, give_up=T.lease_ttl, what=f"half of {key} to be gone", every=T.sample_fast)
    resumed = await intents.resume_workers()
    what = f"a life time of {key} above {T.refreshed_pttl:.1f} s"
    await intents.comes(refreshed, "refresh_within", since=resumed, what=what, every=T.sample_fast)
    await intents.ready(session, owner="IN-PHASE-03")


# --- how long the API's lease lasts


@verifies(
    "IN-PHASE-04",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="drain_max + 2*free_again",
)
async def test_a_channel_that_nobody_runs_is_held_for_one_lease_time(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    await _without_worker(intents)
    held = await intents.begin(profile=first)
    freed = await _taken_again(intents, held.target, second, held.accepted, intents.never("free_again"))
    T.at_least("lease_ttl", since=moment(held.answer), seen=moment(freed), tolerance="lease_slack", what="the conflict")
    T.at_most("free_again", since=held.accepted, seen=moment(freed), what="the channel accepted again")


@verifies(
    "IN-PHASE-04",
    part=2,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="drain_max + 2*free_again",
)
async def test_the_lease_of_the_api_is_not_renewed(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    await _without_worker(intents)
    held = await intents.begin(profile=first)
    key, last = intents.store.service(held.target), T.lease_ttl

    async def falls() -> Lease:
        nonlocal last
        lease = await intents.store.lease(key)
        if lease.owner == held.id:
            fits = lease.left is not None and lease.left <= last
            demand(fits, f"a lease with {last:.2f} s left at most", lease.describe(), key)
            last = lease.left or 0.0
        return lease

    async def taken() -> bool:
        answer = await intents.start(held.target, second)
        expect(answer, accepted(), status(409), why="another start of the channel")
        if (await falls()).owner == held.id:
            expect(answer, status(409), why=f"another start while {key} is there")
        return answer.status == 202

    demand((await falls()).owner == held.id, f"{key} held by the session", "no lease of it", "after the 202")
    async with intents.meanwhile(falls, key, every=T.sample_fast):
        what = "the channel to be accepted again"
        await T.until(taken, give_up=intents.never("free_again"), since=held.accepted, what=what, every=T.probe_every)


async def _without_worker(intents: Intents) -> None:
    """Ends the worker gracefully."""
    with intents.context.arranging("IN-RUN-07"):
        for worker in intents.lone_workers:
            status, _ = await intents.term(worker, intents.never("drain_max"))
            demand(status is not None, "an exit after SIGTERM", f"{worker} still runs", "a worker without sessions")


async def _taken_again(intents: Intents, ref: str, profile: str, since: Moment, give_up: float) -> Answer:
    """Starts the channel every probe_every while the answer is 409; returns the 202. Raises Finding at give_up."""

    async def look() -> Answer | None:
        answer = await intents.start(ref, profile)
        expect(answer, accepted(), status(409), why="another start of the channel")
        return answer if answer.status == 202 else None

    what = "the channel to be accepted again"
    answer, _ = await intents.T.until(look, give_up=give_up, since=since, what=what, every=intents.T.probe_every)
    return answer


@verifies("IN-PHASE-05", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up + lease_ttl")
async def test_a_stopped_session_gives_back_what_the_api_took(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    session = await intents.running(profile=first)
    expect(await intents.start(session.target, second), status(409), why="control: the channel is held")
    since = await intents.stopped(session)
    intents.in_time(await intents.retry(session.target, second), since, "the next start after a stop")


@verifies("IN-PHASE-05", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up + lease_ttl")
async def test_a_session_without_a_tuner_gives_back_what_the_api_took(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    await intents.slots(1)
    await intents.running(profile=first)
    session = await intents.without_tuner(profile=first)
    over = T.now()
    freed = await _taken_again(intents, session.target, second, over, T.give_up)
    sent = Moment(freed.sent, freed.sent)
    T.at_most("lease_left", since=over, seen=sent, what="the next start of a channel for which there was no tuner")


# --- the flag moves


@verifies(
    "IN-PHASE-06",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="give_up + 2*renewal_due + 2*api_ready",
)
async def test_moving_the_flag_disturbs_no_session(intents: Intents) -> None:
    session = await intents.running()
    await _flip(intents, PHASE_2, session)
    expect(await intents.start(session.target), accepted(session.id), why="the same start with the flag off")
    await _flip(intents, PHASE_1, session)
    expect(await intents.start(session.target), status(409), why="the same start with the flag on")


@verifies(
    "IN-PHASE-06",
    part=2,
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="give_up + 2*renewal_due + 2*api_ready",
)
async def test_moving_the_flag_leaves_the_lease_alone(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    key = intents.store.service(session.target)

    async def look() -> None:
        expect((await intents.store.lease(key)).owner, session.id, why=f"owner of {key} while the flag moves")

    async with intents.meanwhile(look, key, every=T.sample_every):
        for settings in (PHASE_2, PHASE_1):
            await _flip(intents, settings, session)


async def _flip(intents: Intents, settings: Mapping[str, str], session: Session) -> None:
    """Starts the API with the flag set so, and judges that the session runs until a renewal was due."""
    await intents.restart(intents.apis[0], **settings)
    why = f"the session after the API was started with the flag {settings['api_leases']}"
    await intents.undisturbed(session, intents.T.renewal_due, why)


@verifies("IN-PHASE-07", isolation="disruptive", nodes=ONE_OF_EACH, waits="give_up + api_ready")
async def test_a_flag_that_was_removed_has_no_effect(intents: Intents) -> None:
    await intents.restart(intents.apis[0], **_removed(intents), **PHASE_1)
    first, second = intents.profiles[:2]
    session = await intents.running(profile=first)
    other = await intents.start(session.target, second)
    expect(other, accepted(), why="a start of a channel that is held")
    demand(other.session_id != session.id, "a session of its own", other.describe(), f"session {session.id} runs")
    expect(await intents.start(session.target, first), accepted(session.id), why="the same start while it runs")


def _removed(intents: Intents) -> Mapping[str, str]:
    """Returns the settings that bring the target into phase 3. Raises NotApplicable for one that is never in it."""
    target = intents.context.target
    if target.dialect.get("phase") == 3:
        return {}
    if "flag_removed" in target.settings:
        return {"flag_removed": "true"}
    raise NotApplicable("the target still has the flag: [dialect] phase is not 3, and there is no setting flag_removed")


# --- nothing stray


@verifies("IN-PHASE-08", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_a_conflict_says_so_and_when_to_come_again(intents: Intents, T: SpecTime) -> None:
    first, second = intents.profiles[:2]
    holder = await intents.running(profile=first)
    answer = await intents.start(holder.target, second)
    expect(answer, status(409), why="a start of a channel that is held")
    with intents.context.collect():
        expect(answer.code, "LEASE_BUSY", why="the code of the conflict")
    again = answer.headers.get("Retry-After", "").strip()
    expect(again, str(T.count("retry_after_seconds")), why="Retry-After of the conflict")
