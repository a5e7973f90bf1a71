"""Identical starts at the same time (seed 5.1 and 3.3): one session for all of them, whichever process answers."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import cycle, islice

from holdfast.check.faults import Faults
from holdfast.check.finding import NotObservable, demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, Intents, Session
from holdfast.conformance.intents.rivals import one_wins
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted
from holdfast.conformance.shared.wire import status

REPLICAS = {"api": 2, "worker": 1}


# --- two at once


@verifies("IN-HERD-01", waits="give_up + 10*start_ready")
async def test_two_identical_starts_share_one_session(intents: Intents, T: SpecTime) -> None:
    await _pairs(intents, T, intents.apis[:1])


@verifies("IN-HERD-04", isolation="quiet", nodes=REPLICAS, waits="give_up + 10*start_ready")
async def test_two_identical_starts_on_two_replicas_share_one_session(intents: Intents, T: SpecTime) -> None:
    await _pairs(intents, T, intents.apis[: T.count("herd_replicas")])


async def _pairs(intents: Intents, T: SpecTime, apis: Sequence[str]) -> None:
    await intents.rounds([partial(_pair, intents, T, apis)] * T.count("pair_rounds"))


async def _pair(intents: Intents, T: SpecTime, apis: Sequence[str]) -> None:
    """Starts a fresh channel twice at once, judges that both are answered with one session, and ends it."""
    ref = intents.channel()
    session = _one_session(ref, await _crowd(intents, ref, T.count("herd_pair"), apis))
    await intents.ready(session)
    await intents.stopped(session)


async def _crowd(intents: Intents, ref: str, size: int, apis: Sequence[str], users: Sequence[str] = ()) -> list[Answer]:
    """Starts a channel so many times at once, each over a connection of its own, users and APIs by turns."""
    turns = zip(cycle(users or [intents.bearer()]), cycle(apis), strict=False)
    starts = [partial(intents.start, ref, None, user, node=api) for user, api in islice(turns, size)]
    return await intents.burst(starts, nodes=apis)


def _one_session(ref: str, answers: Sequence[Answer]) -> Session:
    """Judges that every answer is a 202 with the same session, and returns it."""
    for answer in answers:
        expect(answer, accepted(), why=f"one of {len(answers)} identical starts")
    ids = {answer.session_id for answer in answers}
    demand(len(ids) == 1, "one session for all of them", f"{len(ids)} sessions", f"{len(answers)} identical starts")
    return _session(ref, answers[0])


def _session(ref: str, answer: Answer, profile: str | None = None) -> Session:
    return Session(answer.session_id, ref, profile, answer)


# --- what a herd leaves behind


@verifies("IN-HERD-02", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up + quiet_watch")
async def test_a_herd_makes_one_of_everything(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    await _makes_one_of_everything(intents, keys, T, _one_session)


@verifies(
    "IN-HERD-02",
    part=2,
    isolation="quiet",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    busy=True,
    waits="give_up + quiet_watch",
)
async def test_a_herd_in_phase_1_makes_one_of_everything(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    await _makes_one_of_everything(intents, keys, T, _one_accepted)


@verifies(
    "IN-HERD-02",
    part=2,
    isolation="quiet",
    nodes=REPLICAS,
    needs=["multi_node"],
    settings=PHASE_1,
    busy=True,
    waits="give_up + quiet_watch",
)
async def test_a_herd_on_two_replicas_in_phase_1_makes_one_of_everything(
    intents: Intents, keys: Keyspace, T: SpecTime
) -> None:
    await _makes_one_of_everything(intents, keys, T, _one_accepted)


async def _makes_one_of_everything(
    intents: Intents, keys: Keyspace, T: SpecTime, judge: Callable[[str, Sequence[Answer]], Session]
) -> None:
    await intents.slots(2)
    held, before = await intents.store.leases("tuner"), await _counts(intents)
    ref, began = intents.channel(), T.now()
    session = judge(ref, await _crowd(intents, ref, T.count("herd_size"), intents.apis))
    await intents.ready(session)
    await T.sleep(T.quiet_watch, "anything else of the herd to appear")
    await _one_slot(intents, keys, held, began)
    after = await _counts(intents)
    for kind, count in before.items():
        expect(after[kind] - count, 1, why=f"{kind} made by {T.count('herd_size')} identical starts")


async def _counts(intents: Intents) -> dict[str, int]:
    store = intents.store
    return {
        "records": len(await store.sessions()),
        "mappings": len(await store.mappings()),
        "events": len(await store.events()),
    }


async def _one_slot(intents: Intents, keys: Keyspace, held: Collection[str], began: Moment) -> None:
    """Judges that no more slots were touched than a herd may take, besides those that were held before."""
    seen = await keys.events(f"{intents.store.roots('tuner')[0]}*", since=began)
    touched, most = {event.key for event in seen} - set(held), intents.T.count("tuner_leases_per_herd")
    demand(len(touched) <= most, f"{most} tuner lease at most", plain(sorted(touched)), "starts of one channel at once")


def _one_accepted(ref: str, answers: Sequence[Answer]) -> Session:
    """Judges that one start was accepted and all others met a held channel; returns the session of the one."""
    taken = [answer for answer in answers if answer.status == 202]
    seen = f"{len(taken)} of {len(answers)} accepted"
    demand(len(taken) == 1, "one start accepted in phase 1", seen, f"{len(answers)} identical starts")
    for answer in answers:
        expect(answer, accepted(taken[0].session_id), status(409), why="identical starts in phase 1")
    return _session(ref, taken[0])


@verifies("IN-HERD-02", part=3, isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up + quiet_watch")
async def test_the_log_tells_of_one_tuner_lease(intents: Intents, T: SpecTime) -> None:
    await intents.slots(2)
    before, ref = len(_taken_slots(intents)), intents.channel()
    session = _one_session(ref, await _crowd(intents, ref, T.count("herd_size"), intents.apis))
    await intents.ready(session)
    if not intents.events(event="lease.acquired"):
        raise NotObservable("[observe] events with lines lease.acquired")

    async def told() -> int:
        return len(_taken_slots(intents)) - before

    await intents.settles(told, 1, why="lines lease.acquired that name a tuner lease")
    await T.sleep(T.quiet_watch, "another tuner lease to be taken")
    expect(await told(), 1, why="lines lease.acquired that name a tuner lease, quiet_watch later")


def _taken_slots(intents: Intents) -> list[str]:
    """Returns the tuner leases that were taken, as the log names them."""
    root = intents.store.roots("tuner")[0]
    named = [str(line.get("key", "")) for line in intents.events(event="lease.acquired")]
    return [key for key in named if key.startswith(root)]


# --- a hundred at once


@verifies("IN-HERD-03", busy=True, waits="give_up")
async def test_a_hundred_starts_by_several_users_share_one_session(intents: Intents, T: SpecTime) -> None:
    users = intents.writers[: T.count("herd_users")]
    if len(users) < 2:
        raise NotObservable("[credentials] write2")
    ref = intents.channel()
    session = _one_session(ref, await _crowd(intents, ref, T.count("herd_size"), intents.apis[:1], users))
    await intents.ready(session, owner="IN-HERD-03")


# --- API replicas


@verifies("IN-HERD-04", isolation="quiet", nodes=REPLICAS, busy=True, waits="give_up")
async def test_replicas_answer_with_one_session(intents: Intents, T: SpecTime) -> None:
    await _on_replicas(intents, T)


@verifies("IN-HERD-04", part=2, isolation="quiet", nodes=REPLICAS, busy=True, waits="give_up")
async def test_a_herd_on_replicas_takes_one_tuner_lease(intents: Intents, T: SpecTime) -> None:
    for session in await _on_replicas(intents, T):
        await intents.ready(session)
        held = await intents.store.tuners_of(session.id)
        demand(len(held) == 1, "one tuner lease of the session", plain(held), f"session {session.id}")


async def _on_replicas(intents: Intents, T: SpecTime) -> list[Session]:
    """Starts one channel on each replica in turn and another on all at once; returns the session of each."""
    replicas = intents.apis[: T.count("herd_replicas")]
    ref, other = intents.channel(), intents.channel()
    one = _one_session(ref, [await intents.start(ref, node=replica) for replica in replicas])
    size = len(replicas) * T.count("herd_per_replica")
    return [one, _one_session(other, await _crowd(intents, other, size, replicas))]


# --- several profiles


@verifies("IN-HERD-05", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_of_a_herd_in_several_profiles_one_session_runs(intents: Intents, T: SpecTime) -> None:
    await intents.slots(2)
    await _mixed_herd(intents, T)


@verifies("IN-HERD-05", part=2, isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_a_herd_in_several_profiles_takes_one_slot(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    await intents.slots(2)
    held, began = await intents.store.leases("tuner"), T.now()
    await _mixed_herd(intents, T)
    await _one_slot(intents, keys, held, began)


@verifies("IN-HERD-05", part=3, isolation="disruptive", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_a_herd_in_several_profiles_makes_one_session_each(intents: Intents, T: SpecTime) -> None:
    await intents.slots(2)
    await intents.pause_workers()
    rivals, _ = await _mixed_starts(intents, T)
    expect(len(rivals), T.count("mixed_profiles"), why="sessions, while the worker can't decide any")
    await intents.resume_workers()
    await one_wins(intents, rivals, "starts of a channel in several profiles")


async def _mixed_herd(intents: Intents, T: SpecTime) -> None:
    """Starts a channel in several profiles at once; judges that one session runs, and how long all of it takes."""
    rivals, sent = await _mixed_starts(intents, T)
    await one_wins(intents, rivals, "starts of a channel in several profiles")
    T.at_most("admission_max", since=sent, seen=T.now(), what="all sessions of the herd decided")


async def _mixed_starts(intents: Intents, T: SpecTime) -> tuple[list[Session], Moment]:
    """Starts a channel often in each of several profiles at once; returns the sessions, and when it was started."""
    ref, profiles = intents.channel(), intents.profiles[: T.count("mixed_profiles")]
    turns = list(islice(cycle(profiles), len(profiles) * T.count("mixed_per_profile")))
    answers = await intents.burst([partial(intents.start, ref, profile) for profile in turns])
    made = dict[str, Session]()
    for profile, answer in zip(turns, answers, strict=True):
        expect(answer, accepted(), why="a start of a channel in one of several profiles")
        session = made.setdefault(answer.session_id, _session(ref, answer, profile))
        demand(session.profile == profile, f"a session of {profile}", f"one of {session.profile}", answer.session_id)
    return list(made.values()), Moment(answers[0].sent, max(answer.sent for answer in answers))


# --- a slow store


@verifies("IN-HERD-06", isolation="disruptive", nodes=ONE_OF_EACH, busy=True, waits="give_up + admission_max")
async def test_a_herd_holds_while_the_store_is_slow(intents: Intents, faults: Faults, T: SpecTime) -> None:
    ref, link = intents.channel(), f"{intents.apis[0]}-redis"
    slow = faults.during("delay", link, seconds=T.store_latency, jitter=T.store_jitter, direction="down")
    async with slow:
        answers = await _crowd(intents, ref, T.count("herd_size"), intents.apis[:1])
        answers += await _crowd(intents, ref, T.count("herd_size"), intents.apis[:1])  # now there is a session
        _one_session(ref, answers)
        slowest = max(answers, key=lambda answer: answer.received - answer.sent)
        T.at_most("admission_max", since=_at(slowest.sent), seen=_at(slowest.received), what="the slowest answer")


def _at(seconds: float) -> Moment:
    return Moment(seconds, seconds)
