"""The published contract: what nodes really write is documented, by channel and by schema.

The rows judge what the document says. A target that declares the whole contract (`[dialect] asyncapi`) has promised the
members, the enumerations and the forms of time of `proto/coordinator/asyncapi.yaml` too, and is held to them here.
"""

from collections.abc import Iterable

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.store import CANCEL_JOB, ENQUEUE, SCHEDULE
from holdfast.conformance.coordinator.wire import (
    ACK,
    ASSIGNED,
    BEAT,
    CANCEL,
    COMPLETED,
    DISPATCH,
    FAILED,
    HANDOFF,
    Names,
)
from holdfast.conformance.shared.contract import must_be_declared
from holdfast.spec.asyncapi import MessageContract

# What nodes write, and what the contract calls it: in the document's spelling.
_WRITTEN = (DISPATCH, ASSIGNED, CANCEL, HANDOFF, ACK, BEAT)
_DOCUMENTED = Names()
_DAY = 9


def _promised(cluster: Cluster) -> None:
    must_be_declared(cluster.dialect.get("asyncapi"), "AsyncAPI")


async def _written(cluster: Cluster) -> list[Entry]:
    """Returns all that nodes have written."""
    return [each for kind in _WRITTEN for each in await cluster.bus.all_entries(kind)]


def _undocumented(cluster: Cluster, entries: Iterable[Entry]) -> set[str]:
    """Returns what is wrong with these entries by the contract, wherever the target's own names put them."""
    seen = []
    for entry in entries:
        ids = cluster.names.ids_in(entry.kind, entry.channel) or {}
        members = entry.message.said if entry.message.members is None else dict(entry.message.members)
        seen.append((_DOCUMENTED.channel(entry.kind, **ids), members))
    return MessageContract.of("coordinator").undocumented(seen)


def _judge(cluster: Cluster, entries: list[Entry], kinds: Iterable[str]) -> None:
    if missing := [kind for kind in kinds if all(each.kind != kind for each in entries)]:
        raise Inconclusive(f"nothing was written on {', '.join(missing)}, which is no ordinary day")
    expect(_undocumented(cluster, entries), set(), why=f"of {len(entries)} messages")


async def _jobs_come_and_go(cluster: Cluster, T: SpecTime) -> list[Job]:
    """Lets jobs be dispatched, run, fail, end and be cancelled; returns those that still run."""
    since, jobs = T.now(), list[Job]()
    for given in await cluster.jobs.enqueue(_DAY):
        jobs.append((await cluster.jobs.dispatched(given, "few_out", since=since, owner="CO-DISP-01"))[0])
    running = await cluster.worker.runs(*jobs)
    await cluster.groups.done(jobs, "batch_latency", since=running, owner="CO-CHAN-04")
    completed, failed, cancelled, *rest = jobs
    await cluster.worker.status(completed, COMPLETED)
    await cluster.worker.status(failed, FAILED, error="it did not work")
    asked = await cluster.jobs.cancel(cancelled)
    with cluster.context.arranging("CO-CHAN-02"):
        await cluster.entry(CANCEL, give_up=cluster.never("batch_latency"), since=asked, what="a cancel")
    return rest


@verifies(
    "CO-CHAN-06",
    part=3,
    isolation="disruptive",
    nodes=3,
    waits="first_leader + few_out + 3*heartbeat_interval + clean_drain",
    needs_hooks=[ENQUEUE, SCHEDULE, CANCEL_JOB],
)
async def test_every_message_of_an_ordinary_day_is_documented(cluster: Cluster, T: SpecTime) -> None:
    _promised(cluster)
    await cluster.leader()
    await cluster.jobs.schedule(T.schedule_period)
    rest = await _jobs_come_and_go(cluster, T)
    owners = await cluster.jobs.by_reader(rest)
    leaving = cluster.leave(await cluster.node_of(next(iter(owners))))
    await leaving.ends()
    await T.sleep_until(leaving.begun, T.heartbeat_interval + T.tolerance, "heartbeats of the others")
    _judge(cluster, await _written(cluster), _WRITTEN)


@verifies(
    "CO-TAKE-07",
    isolation="disruptive",
    nodes=3,
    waits="first_leader + ownership_latency + crash_handoff + claim_latency",
)
async def test_the_messages_after_a_crash_are_documented(cluster: Cluster, T: SpecTime) -> None:
    _promised(cluster)
    await cluster.leader()
    jobs = await cluster.jobs.running(_DAY)
    leader = await cluster.id_of(await cluster.leader())
    owner = next(each for each in await cluster.jobs.by_reader(jobs) if each != leader)
    node = await cluster.node_of(owner)
    last = await cluster.beats.last(node)
    await cluster.kill(node)
    with cluster.context.arranging("CO-CRASH-01"):
        give_up = 2 * (T.crash_handoff + T.tolerance)
        crash = await cluster.entry(HANDOFF, give_up=give_up, since=last.at, what="a handoff of an orphan")
    to = crash.message.text("ackTo") or owner
    give_up = cluster.never("claim_latency")
    await cluster.entry(ACK, give_up=give_up, since=crash.at, what="an ACK of the takeover", nodeId=to)
    _judge(cluster, [each for each in await _written(cluster) if each.kind != ASSIGNED], [HANDOFF, ACK, BEAT])
