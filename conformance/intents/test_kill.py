"""Hard kills of the worker (seed 5.3): its leases last until the TTL without a restart, and not a moment with one."""

import math
from functools import partial

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, Intents, Session
from holdfast.conformance.intents.keys import Lease
from holdfast.conformance.intents.kills import (
    busy_until_expiry,
    queued_meanwhile,
    recovers,
    refused_until_expiry,
    restart_api,
    soon,
)
from holdfast.conformance.intents.running import ONE_OF_EACH, WITH_STANDBY, lease_keys, runs_on_first
from holdfast.conformance.intents.wire import Answer, accepted, ended, ended_busy, shown
from holdfast.conformance.shared.recoveries import Kills, Recovery

# Deployments in which workers are killed at the same time, where Holdfast can start several.
DEPLOYMENTS = 4
_NOUGHT = Moment(0.0, 0.0)


# --- without a restart


@verifies("IN-KILL-01", isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + probe_past_ttl")
async def test_the_api_goes_on_answering_without_its_worker(intents: Intents, T: SpecTime) -> None:
    session, other = await intents.running(), intents.channel()
    killed = await intents.kill(intents.lone_workers[0])

    async def look() -> None:
        for answer in (await intents.poll(session), await intents.start(other)):
            demand(answer.answered and answer.status < 500, "an answer, and none of 5xx", answer.describe())

    left = killed.hi + T.probe_past_ttl - T.now().hi
    await intents.throughout(look, left, "the API without its worker", every=T.sample_every)


@verifies("IN-KILL-02", isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + lease_ttl + lease_slack")
async def test_leases_of_a_killed_worker_end_by_their_life_time(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    keys = await lease_keys(intents, session)
    await intents.kill(intents.worker)
    read = {key: await intents.store.lease(key) for key in keys}
    for key, lease in read.items():
        _is_recent(T, key, lease, session)
    last, gone = dict(read), dict[str, Moment]()

    async def look() -> bool:
        for key in keys:
            lease = await intents.store.lease(key)
            if lease.there:
                _only_falls(key, last[key], lease, session)
                last[key] = lease
            else:
                gone.setdefault(key, Moment(last[key].moment.lo, lease.moment.hi))
        return len(gone) == len(keys)

    most = T.lease_ttl + 2 * T.lease_slack + T.sample_every
    await T.until(look, give_up=most, what="the leases to run out", every=T.sample_every)
    for key, lease in read.items():
        early, late = gone[key].hi < lease.expiry.lo - T.lease_slack, gone[key].lo > lease.expiry.hi + T.lease_slack
        off = gone[key].hi - lease.expiry.lo
        demand(not (early or late), "an end when the life time says", f"{off:+.2f} s from it", key)


def _is_recent(T: SpecTime, key: str, lease: Lease, session: Session) -> None:
    """Judges that a lease is the session's and was renewed on time."""
    expect(lease.owner, session.id, why=f"owner of {key} right after the kill")
    demand(lease.left is not None, "a lease with a life time", lease.describe(), key)
    left = Moment(lease.left or 0.0, lease.left or 0.0)
    T.at_least("lease_left", since=_NOUGHT, seen=left, tolerance="lease_slack", what=f"life time of {key}")
    T.at_most("lease_ttl", since=_NOUGHT, seen=left, tolerance="lease_slack", what=f"life time of {key}")


def _only_falls(key: str, before: Lease, now: Lease, session: Session) -> None:
    expect(now.owner, session.id, why=f"owner of {key} after the kill")
    falls = now.left is not None and before.left is not None and now.left <= before.left
    demand(falls, f"less than {before.describe()}", now.describe(), f"{key} after the kill")


@verifies("IN-KILL-03", isolation="disruptive", nodes=ONE_OF_EACH, settings=PHASE_1, waits="start_ready + free_again")
async def test_in_phase_1_the_channel_is_refused_until_the_lease_ends(intents: Intents) -> None:
    first, second = intents.profiles[:2]
    held = await intents.running(profile=first)
    killed = await intents.kill(intents.lone_workers[0])
    await refused_until_expiry(intents, held, second, killed)


@verifies(
    "IN-KILL-04",
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="start_ready + standby_ready",
)
async def test_another_worker_finds_channel_and_tuner_taken_until_the_leases_end(intents: Intents) -> None:
    await intents.slots(1)
    held = await runs_on_first(intents)
    killed = await intents.kill(intents.lone_workers[0])
    await busy_until_expiry(intents, held, killed)


@verifies(
    "IN-KILL-05",
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="probe_past_ttl + 2*start_ready",
)
async def test_a_dead_session_does_not_answer_for_its_channel_for_ever(intents: Intents, T: SpecTime) -> None:
    dead = await runs_on_first(intents)
    killed = await intents.kill(intents.lone_workers[0])
    await T.sleep_until(killed, T.probe_past_ttl, "the leases of the dead worker to run out")
    await _starts_anew(intents, dead)
    await intents.ended(dead, since=killed)


async def _starts_anew(intents: Intents, dead: Session) -> None:
    """Judges that an identical start is answered with a session of its own, and that this one runs."""
    new = await intents.begin(dead.target, dead.profile)
    demand(new.id != dead.id, f"another session than {dead.id}", new.answer.describe(), "the same start again")
    expect(await intents.decided(new), shown(*intents.running_states), why="the session of the same start again")


# --- with a restart


@verifies("IN-KILL-06", isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + recover_ready")
async def test_leases_of_the_killed_worker_are_gone_once_it_is_back(intents: Intents) -> None:
    session = await intents.running()
    keys = await lease_keys(intents, session)
    await intents.kill(intents.worker)
    started = await intents.restart(intents.worker)
    await intents.released(*keys, bound="recover_ready", since=started, what="the leases of the killed worker gone")


@verifies("IN-KILL-06", isolation="disruptive", nodes=ONE_OF_EACH, waits="recover_ready")
async def test_leases_of_strangers_are_gone_once_the_worker_starts(intents: Intents, T: SpecTime) -> None:
    keys = intents.store.service(intents.channel()), intents.store.tuner(0)
    await intents.kill(intents.worker)
    for key in keys:
        await intents.store.ask("SET", key, "foreign", "PX", round(T.foreign_expiry * 1000))
    started = await intents.restart(intents.worker)
    await intents.released(*keys, bound="recover_ready", since=started, what="leases of strangers gone")


@verifies(
    "IN-KILL-07",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    busy=True,
    waits="queued_rounds*(stop_release + 2*busy_verdict) + recover_ready",
)
async def test_what_was_queued_while_the_worker_was_down_meets_no_old_lease(intents: Intents, T: SpecTime) -> None:
    rounds = T.count("queued_rounds")
    for turn in range(rounds):
        queued, started = await queued_meanwhile(intents)

        async def ready(session: Session = queued) -> bool:
            seen = await intents.poll(session)
            demand(not seen.terminal, "a session that runs", seen.describe(), "queued while the worker was down")
            return seen.state in intents.running_states

        await intents.comes(ready, "recover_ready", since=started, what="the queued session running")
        if turn == rounds - 1:
            await T.sleep_until(started, T.recover_ready, "a flush that comes late")
        rival = await intents.begin(queued.target, intents.profiles[2])
        expect(await intents.decided(rival), ended_busy(), why="another start of the channel")
        await intents.stopped(queued)


@verifies(
    "IN-KILL-08",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    busy=True,
    waits="kill_cycles*(stop_release + recover_ready)",
)
async def test_the_channel_is_there_at_once_over_repeated_kills(intents: Intents, T: SpecTime) -> None:
    for _ in range(T.count("kill_cycles")):
        recovered = await recovers(intents)
        soon(intents, recovered)
        await intents.stopped(recovered.new)


@verifies("IN-KILL-09", isolation="disruptive", nodes=ONE_OF_EACH, waits="3*start_ready + recover_ready")
async def test_a_restart_of_the_worker_leaves_records_mappings_and_events(intents: Intents) -> None:
    over = await intents.running()
    await intents.stopped(over)
    before = await intents.poll(over)
    await intents.kill(intents.lone_workers[0])
    queued = await intents.begin()
    await intents.restart(intents.worker)
    after = await intents.poll(over)
    expect((after.state, after.reason), (before.state, before.reason), why="a session that had ended before the kill")
    answer = await intents.start(queued.target, queued.profile)
    expect(answer, accepted(queued.id), why="the start that was queued while the worker was down, again")
    expect(await intents.decided(queued), shown(*intents.running_states), why="the queued session")


@verifies("IN-KILL-09", isolation="disruptive", nodes=ONE_OF_EACH, waits="start_ready + api_ready + renewal_due")
async def test_a_restart_of_the_api_frees_no_channel(intents: Intents, T: SpecTime) -> None:
    held = await intents.running()
    restarted = await restart_api(intents)
    rival = await intents.begin(held.target, intents.profiles[1])
    expect(await intents.decided(rival), ended_busy(), why="another start of the channel after a restart of the API")
    left = restarted.hi + T.renewal_due - T.now().hi
    await intents.undisturbed(held, left, "the running session after a restart of the API")


@verifies("IN-KILL-10", isolation="disruptive", nodes=ONE_OF_EACH, waits="2*start_ready + recover_ready + renewal_due")
async def test_the_restarted_worker_ends_the_sessions_of_the_killed_one(intents: Intents, T: SpecTime) -> None:
    dead = await intents.running()
    await intents.kill(intents.worker)
    started = await intents.restart(intents.worker)

    async def over() -> bool:
        return (await intents.poll(dead)).terminal

    await intents.comes(over, "recover_ready", since=started, what="the session of the killed worker terminal")
    still = partial(_still_ended, intents, dead)
    await intents.throughout(still, T.renewal_due, "the session of the killed worker", every=T.sample_every)
    await _starts_anew(intents, dead)


async def _still_ended(intents: Intents, dead: Session) -> None:
    expect(await intents.poll(dead), ended(), why="the session of the killed worker")


@verifies(
    "IN-KILL-11",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    weight=2,
    waits="15*(start_ready + recover_ready)",
)
async def test_recovery_after_kills_keeps_its_percentile(intents: Intents, T: SpecTime) -> None:
    """Kills in several deployments at once and judges all together; stops once the percentile is surely missed."""
    wanted = intents.context.catalogue.requirements["IN-KILL-11"].samples or 0
    further = DEPLOYMENTS - 1 if intents.context.target.startable else 0
    all_ = [intents, *[await intents.another() for _ in range(further)]]
    each = math.ceil(wanted / len(all_))
    kills = Kills(each * len(all_))
    await intents.parallel([partial(_kill_again_and_again, one, each, kills) for one in all_])
    kills.judge(T, "recover_p95", T.count("percentile") / 100)


async def _kill_again_and_again(intents: Intents, times: int, kills: Kills) -> None:
    T = intents.T
    while times and not kills.late:
        held = await intents.running(profile=intents.profiles[0])
        killed, queued = await intents.kill(intents.worker), intents.deployment.run_queue_wait()
        await intents.restart(intents.worker)
        new = await intents.begin(held.target, intents.profiles[1])

        async def decided(session: Session = new) -> Answer | None:
            seen = await intents.poll(session)
            return seen if seen.terminal or seen.state in intents.running_states else None

        verdict, seen = await T.until(decided, give_up=4 * T.recover_p95, since=killed, what="the channel again")
        expect(verdict, shown(*intents.running_states), why="a start of the channel after kill and restart")
        recovery = Recovery.of(killed, seen, intents.deployment.run_queue_wait() - queued)
        times -= kills.take(intents.context, recovery, T.recover_p95)
        await intents.stopped(new)
