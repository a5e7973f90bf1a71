"""Settings of the document that a node is started with (seed 6, Configuration)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.check.finding import Inconclusive
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.beats import Beat
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.ghost import Ghost, Swallowed, playing
from holdfast.conformance.coordinator.leaving import Leaving
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.pace import around, evenly
from holdfast.conformance.coordinator.wire import HANDOFF, NODE_CRASH

# Heartbeats that are looked at, rounds of a death, running jobs of who dies, and readers of the ghost.
_BEATS, _ROUNDS, _JOBS, _READERS = 6, 3, 5, 3
_CROWD = "start_up + first_leader + load_shown + 2*claim_latency"
# Tolerances that a wait goes on after the last legal moment, so that what comes late is seen to be late.
_LINGER = 3

# --- CO-CONF-01


def _health(T: SpecTime) -> dict[str, str]:
    """The settings of CO-CONF-01 that differ from the document's."""
    return {
        "heartbeat_interval": f"{T.set_heartbeat:g}",
        "dead_node_timeout": f"{T.set_dead:g}",
        "orphan_check_interval": f"{T.set_check:g}",
    }


async def _start(cluster: Cluster) -> None:
    """Starts all nodes with settings of their own, and waits until one leads and all have beaten."""
    for node in cluster.nodes:
        await cluster.restart(node, **_health(cluster.T))
    await cluster.leader()
    await cluster.beats.first_of_all(cluster.nodes)


@verifies("CO-CONF-01", isolation="disruptive", nodes=1, start="by hand", waits="start_up + first_leader + lease")
async def test_the_heartbeat_interval_is_a_setting(cluster: Cluster, T: SpecTime) -> None:
    await _start(cluster)
    since, node = T.now(), cluster.alone

    async def beaten() -> list[Beat] | None:
        found = await cluster.beats.of(node, since=since)
        return found if len(found) >= _BEATS else None

    give_up = 2 * _BEATS * (T.set_heartbeat + T.tolerance)
    beats, _ = await T.until(beaten, give_up=give_up, since=since, what=f"{_BEATS} heartbeats of {node}")
    evenly(T, "set_heartbeat", [beat.entry for beat in beats], f"the next heartbeat of {node}")


async def _die(cluster: Cluster) -> tuple[str, Beat, dict[str, list[Entry]]]:
    """Kills an owner and waits for the NodeCrash entries of as many jobs as it counted.

    Returns its name, its last heartbeat, and the entries by the job's id.
    """
    T, (node, *_) = cluster.T, await cluster.followers()
    await cluster.jobs.at_least(node, _JOBS)
    await cluster.kill(node)
    last = await cluster.beats.last(node)

    async def published() -> dict[str, list[Entry]] | None:
        found = await _crash_entries(cluster, last.at)
        return found if len(found) >= (last.job_count or 0) else None

    give_up = T.set_crash_handoff + _LINGER * T.tolerance
    what = f"NodeCrash entries of {last.job_count} jobs that {node} owned"
    found, _ = await T.until(published, give_up=give_up, since=last.at, what=what)
    return node, last, found


async def _crash_entries(cluster: Cluster, since: Moment) -> dict[str, list[Entry]]:
    """Returns the NodeCrash entries since then by the job's id, oldest first."""
    found = dict[str, list[Entry]]()
    for entry in await cluster.found(HANDOFF, lambda each: each.message.reason == NODE_CRASH, since=since):
        found.setdefault(entry.message.job_id, []).append(entry)
    return found


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
@verifies(
    "CO-CONF-01",
    part=2,
    isolation="disruptive",
    nodes=3,
    start="by hand",
    waits=_CROWD + " + set_crash_handoff",
)
async def test_silence_and_orphan_check_are_settings(cluster: Cluster, T: SpecTime, number: int) -> None:
    cluster.context.transcript.note(f"round {number}")
    await _start(cluster)
    _, last, found = await _die(cluster)
    for entries in found.values():
        seen, what = entries[0].at, f"the NodeCrash entry of {entries[0].message.job_id}"
        T.at_least("set_dead", since=last.at, seen=seen, tolerance="tolerance", what=what)
        T.at_most("set_crash_handoff", since=last.at, seen=seen, tolerance="tolerance", what=what)


async def _swallowed(cluster: Cluster, ghost: Ghost) -> list[Swallowed]:
    """Lets a ghost take handoffs of a dead node from the others for half an orphan check; returns what it got.

    A round in which it got none is repeated.
    """
    T = cluster.T
    for _ in range(_ROUNDS):
        await ghost.compete(_READERS)
        node, _, found = await _die(cluster)
        first = min((entries[0].at for entries in found.values()), key=lambda at: at.lo)
        await T.sleep_until(first, T.set_check / 2, "the ghost to take handoffs from the others")
        await ghost.leave()
        if ghost.swallowed:
            return list(ghost.swallowed)
        await cluster.restart(node, **_health(T))
        await cluster.beats.next(node, since=T.now())
    raise Inconclusive(f"{ghost.id}, a peer played by the suite, got no handoff in {_ROUNDS} rounds")


@verifies(
    "CO-CONF-01",
    part=3,
    isolation="disruptive",
    nodes=3,
    start="by hand",
    waits=_CROWD + " + set_crash_handoff + 2*set_check",
)
async def test_orphans_are_looked_for_at_the_interval_that_was_set(cluster: Cluster, T: SpecTime) -> None:
    await _start(cluster)
    async with playing(cluster.ghost()) as ghost:
        for lost in await _swallowed(cluster, ghost):
            first, second = await _published_twice(cluster, lost)
            what = f"the second NodeCrash entry of {lost.job_id}"
            around(T, "set_check", since=first.at, seen=second.at, tolerance="wide_tolerance", what=what)


async def _published_twice(cluster: Cluster, lost: Swallowed) -> tuple[Entry, Entry]:
    """Waits for the entry of the next check of a job whose handoff is lost; returns its first entry and that one.

    Copies in between count as such only where the target declares that it makes them.
    """
    T = cluster.T
    copies = bool(cluster.dialect.get("crash_handoff_retries"))

    async def again() -> tuple[Entry, Entry] | None:
        first, *later = (await _crash_entries(cluster, Moment(0, lost.at.hi)))[lost.job_id]
        earliest = first.at.lo + T.set_check - T.wide_tolerance if copies else 0.0
        return next(((first, entry) for entry in later if entry.at.hi >= earliest), None)

    give_up = T.set_check + T.wide_tolerance + _LINGER * T.tolerance
    what = f"a second NodeCrash entry of {lost.job_id}"
    found, _ = await T.until(again, give_up=give_up, since=lost.at, what=what)
    return found


# --- CO-CONF-02

_DRAIN = "start_up + load_shown + first_offer + case_c_exit + exit_tolerance"


@asynccontextmanager
async def _drained(cluster: Cluster, **settings: str) -> AsyncIterator[tuple[Leaving, Job]]:
    """Starts the only node with these settings, gives it a job, and ends it beside a ghost."""
    await cluster.restart(cluster.alone, **settings)
    (job,) = await cluster.jobs.owned()
    async with playing(cluster.ghost()):
        yield cluster.leave(cluster.alone), job


def _publications(T: SpecTime, retries: int) -> int:
    """Returns how often a handoff is published with so many retries, in the reading that the target declares."""
    first_counts = T.count("handoff_publications") == T.count("handoff_max_retries")
    return max(1, retries if first_counts else 1 + retries)


@verifies("CO-CONF-02", isolation="disruptive", nodes=1, start="by hand", waits=_DRAIN)
async def test_wait_and_number_of_retries_are_settings(cluster: Cluster, T: SpecTime) -> None:
    retries = T.count("set_retries")
    settings = {"handoff_ack_timeout": f"{T.set_ack:g}", "handoff_max_retries": f"{retries}"}
    async with _drained(cluster, **settings) as (leaving, job):
        await leaving.ends()
        why = f"HandoffMaxRetries is {retries}, and nobody acknowledged it"
        entries = await leaving.counted(job, _publications(T, retries), why)
        evenly(T, "set_ack", entries, "the next publication")


@verifies("CO-CONF-02", isolation="disruptive", nodes=1, start="by hand", waits=_DRAIN)
async def test_no_retries_mean_one_publication(cluster: Cluster) -> None:
    async with _drained(cluster, handoff_max_retries="0") as (leaving, job):
        await leaving.ends()
        await leaving.counted(job, 1, "HandoffMaxRetries is 0")


@verifies("CO-CONF-02", isolation="disruptive", nodes=1, start="by hand", waits=_DRAIN)
async def test_the_hard_limit_is_a_setting_and_cuts_retries_short(cluster: Cluster, T: SpecTime) -> None:
    async with _drained(cluster, handoff_hard_timeout=f"{T.set_hard:g}") as (leaving, job):
        await leaving.offer(job)
        ended = await leaving.exits_by("set_hard", since=leaving.begun)
        what = f"the exit of {leaving.node}"
        T.at_least("set_hard", since=leaving.begun, seen=ended, tolerance="tolerance", what=what)
