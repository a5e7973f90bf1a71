"""Rules of the coordinator that need no Redis: the drain and its cases, the lease, silence, loads, messages."""

import asyncio
from math import inf
from typing import Any

import pytest

from holdfast.reference.coordinator.job_events import JobEvents
from holdfast.reference.coordinator.messages import LEVELS, NODE_STATUSES, STATUSES, decode
from holdfast.reference.coordinator.orphans import OrphanJobDetector
from holdfast.reference.coordinator.settings import Settings, settings_from
from holdfast.reference.shared.settings import BadSetting
from tests.reference.coordinator.jumping import Alone, ends
from tests.reference.coordinator.world import BEATS, HANDOFF


def offers(alone: Alone, job: str) -> list[float]:
    return [at for at, message in alone.published(HANDOFF) if message["jobId"] == job]


def beating(alone: Alone) -> Any:
    """Returns a function that lets a peer beat."""
    return lambda: alone.hear("ghost")


async def drained(alone: Alone, look: Any = lambda: None) -> float:
    """Returns when a node that was told to stop at 0 s has ended."""
    look()
    return await ends(alone.node.drain.on_sigterm(), alone.clock, look)


async def test_case_a_an_ack_in_time_settles_the_job() -> None:
    alone = Alone()
    alone.own("j")

    def look() -> None:
        if alone.clock.now() == 4.0:
            alone.acknowledge("j")

    assert await drained(alone, look) <= 4.2
    assert offers(alone, "j") == [0.0]


async def test_case_b_a_retry_follows_each_timeout_until_the_ack() -> None:
    alone = Alone()
    alone.own("j", "k")

    def look() -> None:
        if alone.clock.now() in {7.0, 12.0}:
            alone.acknowledge("j" if alone.clock.now() == 7.0 else "k")

    assert await drained(alone, look) <= 12.2
    assert (offers(alone, "j"), offers(alone, "k")) == ([0.0, 5.0], [0.0, 5.0, 10.0])
    copies = [message for _, message in alone.published(HANDOFF) if message["jobId"] == "k"]
    assert {(each["reason"], each["executionId"]) for each in copies} == {("Shutdown", "h-k")}


async def test_case_c_a_job_is_given_up_at_twenty_seconds_and_the_exit_is_at_fifty() -> None:
    alone = Alone()
    alone.own("j", "k", "m")
    assert await drained(alone, beating(alone)) == pytest.approx(50.0, abs=0.2)
    assert offers(alone, "j") == offers(alone, "m") == [0.0, 5.0, 10.0, 15.0]
    marks = [(at, facts["state"]) for at, name, facts in alone.store.ran if name == "mark"]
    assert marks == [(0.0, "HandingOff")] * 3 + [(20.0, "ORPHAN_PENDING")] * 3


async def test_case_d_a_lonely_node_stays_for_sixty_seconds() -> None:
    alone = Alone()
    alone.own("j")
    assert await drained(alone) == pytest.approx(60.0, abs=0.2)
    assert alone.node.exit.limit == 60.0  # type: ignore[attr-defined]  # the test's own
    assert len(offers(alone, "j")) == 4


async def test_a_late_ack_ends_the_wait_of_case_c() -> None:
    alone = Alone()
    alone.own("j")

    def look() -> None:
        alone.hear("ghost")
        if alone.clock.now() == 30.0:
            alone.acknowledge("j")

    assert await drained(alone, look) <= 30.3


async def test_a_job_that_ends_while_it_is_offered_is_settled() -> None:
    alone = Alone()
    alone.own("j")
    (job,) = alone.node.registry.jobs.values()

    def look() -> None:
        if alone.clock.now() == 2.0:
            JobEvents.finished(alone.node.job_events, job, "Completed")

    assert await drained(alone, look) <= 2.3
    assert offers(alone, "j") == [0.0]


async def test_an_idle_node_has_nothing_to_wait_for() -> None:
    assert await drained(Alone()) <= 0.2


async def test_the_lease_is_over_thirty_seconds_after_the_last_renewal_that_was_answered() -> None:
    alone = Alone()
    lease = alone.node.lease
    work = alone.begin(alone.node.challenge.run())
    await alone.clock.jump(25.0)
    assert lease.is_leader()
    assert alone.ran("renew_lock") == [10.0, 20.0]
    alone.store.away = True
    await alone.clock.jump(49.9)
    assert lease.is_leader()
    await alone.clock.jump(50.1)
    assert not lease.is_leader()
    alone.store.away = False
    await alone.clock.jump(53.0)
    assert lease.is_leader(), "it has acquired the lock anew"
    assert lease.terms == 2
    work.cancel()


async def test_a_leader_whose_lock_is_anothers_stops_at_once() -> None:
    alone = Alone()
    work = alone.begin(alone.node.challenge.run())
    await alone.clock.jump(5.0)
    alone.store.answers["renew_lock"] = {"renewed": False}
    alone.node.draining = True  # no new challenge
    await alone.clock.jump(10.1)
    assert alone.node.lease.deadline == -inf
    work.cancel()


async def test_a_node_is_dead_after_thirty_seconds_of_silence_and_alive_when_it_beats_again() -> None:
    alone = Alone()
    health, topics = alone.node.health, alone.node.topics
    alone.hear("b")
    await alone.clock.jump(29.9)
    topics.heard_until = alone.clock.now()
    assert not health.is_dead("b")
    await alone.clock.jump(30.0)
    topics.heard_until = alone.clock.now()
    assert health.is_dead("b")
    assert health.live_peers() == {}
    alone.hear("b")
    assert not health.is_dead("b")


async def test_a_node_that_could_not_listen_declares_nobody_dead() -> None:
    alone = Alone()
    alone.hear("b")
    await alone.clock.jump(100.0)
    assert not alone.node.health.is_dead("b")


async def test_an_owner_whom_nobody_has_heard_is_dead_thirty_seconds_after_it_was_noticed() -> None:
    alone = Alone()
    health, topics = alone.node.health, alone.node.topics
    await alone.clock.jump(100.0)
    health.notice({"old", "me"})
    for moment, dead in ((129.9, False), (130.0, True)):
        await alone.clock.jump(moment)
        topics.heard_until = moment
        assert health.is_dead("old") is dead
        assert not health.is_dead("me")


async def test_orphans_are_looked_for_when_a_node_becomes_leader_and_every_thirty_seconds() -> None:
    alone = Alone()
    (detector,) = [duty for duty in alone.node.duties if isinstance(duty, OrphanJobDetector)]
    orphan = {"jobId": "j", "historyId": "h", "owner": "dead"}
    alone.store.answers["find_orphans"] = {"orphans": [orphan]}
    work = alone.begin(detector.run())
    await alone.clock.jump(17.0)
    assert alone.ran("find_orphans") == []
    alone.node.lease.deadline = inf
    await alone.clock.jump(80.0)
    looks = alone.ran("find_orphans")
    assert looks == alone.ran("republish")
    assert 17.0 <= looks[0] <= 18.0
    assert [later - looks[0] for later in looks] == pytest.approx([0.0, 30.0, 60.0])
    work.cancel()


async def test_beats_come_every_ten_seconds_whatever_they_take() -> None:
    alone = Alone()
    alone.own("j", "k")
    alone.store.answers["resume"] = {"jobs": [{"jobId": "j", "historyId": "h-j", "epoch": 1}]}
    work = alone.begin(alone.node.heartbeat.run())
    await alone.clock.jump(41.0)
    beats = alone.published(BEATS)
    assert [at for at, _ in beats] == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert {message["jobCount"] for _, message in beats} == {1}, "k is another's by the store"
    work.cancel()


@pytest.mark.parametrize(
    ("own", "others", "moved"),
    [(100, [20], 40), (42, [20], 11), (38, [20], 0), (38, [20, 30], 0), (52, [50, 48], 0), (3, [0], 1), (1, [0], 0)],
)
async def test_a_node_with_twice_the_jobs_of_another_gives_away_what_is_above_the_mean(
    own: int, others: list[int], moved: int
) -> None:
    alone = Alone(rebalance=True)
    alone.own(*(f"j{n}" for n in range(own)))
    for number, jobs in enumerate(others):
        alone.hear(f"peer{number}", jobs)
    await alone.node.heartbeat.beat()
    look = alone.begin(alone.node.rebalancer.look())
    await alone.clock.jump(1.0)
    assert len(alone.published(HANDOFF)) == moved
    for _, message in alone.published(HANDOFF):
        assert message["reason"] == "Rebalance"
        alone.acknowledge(message["jobId"])
    await look
    again = alone.begin(alone.node.rebalancer.look())
    await alone.clock.jump(2.0)
    assert len(alone.published(HANDOFF)) == moved, "the figures are older than the handoff"
    again.cancel()


async def test_peers_that_drain_or_are_dead_are_no_reason_to_rebalance() -> None:
    alone = Alone(rebalance=True)
    alone.own(*(f"j{n}" for n in range(50)))
    alone.hear("dead", 0)
    await alone.clock.jump(40.0)
    alone.hear("draining", 0, "Draining")
    assert alone.node.rebalancer.peers() == {}


async def test_a_node_that_gives_up_rebalancing_keeps_its_jobs() -> None:
    alone = Alone(rebalance=True)
    alone.own("j", "k")
    alone.hear("peer", 0)
    await alone.node.heartbeat.beat()
    assert await ends(alone.node.rebalancer.look(), alone.clock) == pytest.approx(20.0, abs=0.2)
    assert alone.node.registry.count() == 2
    assert [facts["state"] for _, name, facts in alone.store.ran if name == "mark"] == ["HandingOff", "Owned"]


def test_messages_are_read_without_regard_to_case_and_by_number() -> None:
    message = decode('{"JOBID": "j", "executionId": "e", "status": 4, "Level": "warning", "jobCount": 3, "x": true}')
    assert message is not None
    assert (message.text("jobId"), message.history_id) == ("j", "e")
    assert (message.one_of("status", STATUSES), message.one_of("level", LEVELS)) == ("Running", "Warning")
    assert (message.number("jobCount"), message.number("nothing"), message.text("jobCount")) == (3, 0, "")
    assert message.one_of("status", NODE_STATUSES) == ""


def test_settings_are_those_of_section_6_and_read_in_milliseconds() -> None:
    assert Settings().spoken() == {
        "LeaderLeaseDuration": 30_000,
        "LeaderRenewInterval": 10_000,
        "HeartbeatInterval": 10_000,
        "DeadNodeTimeout": 30_000,
        "HandoffAckTimeout": 5_000,
        "HandoffMaxRetries": 3,
        "HandoffHardTimeout": 60_000,
        "OrphanCheckInterval": 30_000,
    }
    given = settings_from({"CO_LEASE_MS": "6000"}, ["--renew-ms", "1500", "--handoff-max-retries", "0", "--rebalance"])
    assert (given.lease, given.renew_interval, given.handoff_max_retries, given.rebalance) == (6.0, 1.5, 0, True)


@pytest.mark.parametrize(
    "argv",
    [
        ["--lease-ms", "x"],
        ["--lease-ms", "10000"],
        ["--heartbeat-ms", "30000"],
        ["--names", "nobody's"],
        ["--topics", "carrier"],
        ["--redis-url", "localhost"],
        ["--handoff-max-retries", "-1"],
        ["--unknown", "1"],
    ],
)
def test_a_setting_that_no_node_can_run_with_is_refused_in_words(argv: list[str]) -> None:
    with pytest.raises(BadSetting, match=r"must|Unknown"):
        settings_from({}, argv)


async def test_two_nodes_started_without_an_id_have_two() -> None:
    await asyncio.sleep(0)
    assert len({Alone().node.ids.node_id() for _ in range(2)}) == 2
