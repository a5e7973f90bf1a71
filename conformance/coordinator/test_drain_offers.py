"""What a draining node publishes (seed 4, Scenario A, steps 2 to 4): one handoff for each job that it owns."""

from typing import Any

import pytest

from holdfast.check.finding import ArrangementFailed, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.deeds import Deeds
from holdfast.conformance.coordinator.ghost import everything, playing
from holdfast.conformance.coordinator.store import JOBS_OF
from holdfast.conformance.coordinator.wire import HANDOFF

_ARRANGED = "first_leader + load_shown"
# What stands for Shutdown in each spelling that a descriptor may declare.
_REASONS: dict[str, tuple[str, ...]] = {"seed": ("shutdown",), "upstream": ("drain", "0")}


def _in_form(cluster: Cluster, entries: list[Entry]) -> None:
    """Judges that each handoff names one job, and the reason of a shutdown as the target spells it."""
    spelling = str(cluster.dialect.get("reasons", "seed"))
    for entry in entries:
        demand(entry.message.job_id, "one job in each handoff", entry.describe(), "jobId")
        said: Any = entry.message.get("reason")
        legal = str(said).lower() in _REASONS[spelling]
        demand(legal, f"reason {' or '.join(_REASONS[spelling])}", entry.describe(), "the node was told to stop")


@verifies("CO-DRAIN-04", isolation="disruptive", nodes=1, waits=f"{_ARRANGED} + batch_latency + clean_drain")
async def test_exactly_the_open_jobs_are_handed_off(cluster: Cluster, T: SpecTime) -> None:
    node = cluster.alone
    jobs = await cluster.jobs.owned(5)
    finished, still_open = jobs[:2], jobs[2:]
    ended = await cluster.worker.completes(*finished)
    await T.sleep_until(ended, T.batch_latency, "the node to drop the jobs that have ended")
    async with playing(cluster.ghost()) as ghost:
        ghost.acks(everything)
        leaving = cluster.leave(node)
        await leaving.ends()
    offers = await leaving.offers()
    _in_form(cluster, offers)
    offered = {each.message.job_id for each in offers}
    wanted, seen = (" and ".join(sorted(ids)) for ids in ({job.id for job in still_open}, offered))
    expect(seen, wanted, why="jobs that were handed off: those still open")


@verifies("CO-DRAIN-04", part=2, isolation="disruptive", nodes=2, waits=f"2*({_ARRANGED}) + clean_drain")
async def test_only_its_own_jobs_are_handed_off(cluster: Cluster) -> None:
    node, other = cluster.nodes
    await cluster.beats.first_of_all(cluster.nodes)
    await cluster.jobs.at_least(node, 2)
    await cluster.jobs.at_least(other, 2)
    settled = Moment(cluster.T.now().lo, cluster.T.now().hi + cluster.T.claim_latency)
    last = await cluster.beats.next(node, since=settled)
    leaving = cluster.leave(node)
    await leaving.ends()
    offers = await leaving.offers()
    _in_form(cluster, offers)
    offered = {each.message.job_id for each in offers}
    expect(len(offered), last.job_count, why="jobs that were handed off, of those that it counted last")


# --- CO-DRAIN-05


_MANY, _ROUNDS = 10, 3
_HANDED = f"{_ARRANGED} + clean_drain"


async def _beside_another(cluster: Cluster) -> int:
    """Lets the first of two nodes own many jobs; returns how many it counts."""
    await cluster.beats.first_of_all(cluster.nodes)
    return (await cluster.jobs.at_least(cluster.nodes[0], _MANY)).count


@pytest.mark.parametrize("number", range(1, _ROUNDS + 1))
@verifies("CO-DRAIN-05", isolation="disruptive", nodes=2, waits=_HANDED)
async def test_no_handoff_is_won_by_its_sender(cluster: Cluster, number: int) -> None:
    cluster.context.transcript.note(f"round {number}")
    node, other = cluster.nodes
    count = await _beside_another(cluster)
    leaving = cluster.leave(node)
    await leaving.ends()
    offered = [each.message.job_id for each in await leaving.offers()]
    acks = await leaving.acks()
    won = [each for each in acks if each.message.new_owner == await cluster.id_of(node)]
    told = "; ".join(each.describe() for each in won[:5])
    demand(not won, f"another owner than {node}", told, "it is draining")
    expect(len(set(offered)), count, why="jobs that were handed off, of those that it counted")
    twice = sorted({job_id for job_id in offered if offered.count(job_id) > 1})
    with cluster.T.unless(lambda: cluster.T.held_back(leaving.begun), cluster.T.handoff_ack_timeout / 2):
        told = f"two or more of {', '.join(twice)}"
        demand(not twice, "one handoff entry for each job", told, f"nobody but {other} reads them")
    expect(len({each.message.job_id for each in acks}), count, why="jobs that were acknowledged")
    expect(len(acks), count, why="ACKs, one for each job")


@verifies("CO-DRAIN-05", part=2, isolation="disruptive", nodes=2, waits=_HANDED)
async def test_a_draining_node_reads_no_handoffs(cluster: Cluster, deeds: Deeds, T: SpecTime) -> None:
    node = cluster.nodes[0]
    await _beside_another(cluster)
    leaving = cluster.leave(node)
    await leaving.ends()
    queue = cluster.names.channel(HANDOFF)
    await deeds.tap.nothing_bypassed()
    reads = deeds.tap.commands("XREADGROUP", key=queue, node=node)
    if not reads:
        raise Inconclusive(f"the tap does not show that {node} read {queue} before")
    late = [each for each in reads if each.at > leaving.begun.hi + T.tolerance]
    deeds.tap.show(late[:5])
    told = f"{len(late)}, the first {late[0].at - leaving.begun.hi:.2f} s after SIGTERM" if late else "none"
    with T.unless(lambda: T.held_back(leaving.begun), T.tolerance):
        demand(not late, f"no XREADGROUP on {queue}", told, f"{node} is draining")


@verifies("CO-DRAIN-05", part=3, isolation="disruptive", nodes=2, waits=_HANDED, needs_hooks=[JOBS_OF])
async def test_the_other_node_has_the_jobs_when_the_sender_exits(cluster: Cluster) -> None:
    node, other = cluster.nodes
    await _beside_another(cluster)
    mine = await cluster.store.jobs_of(await cluster.id_of(node))
    if len(mine) < _MANY:
        raise ArrangementFailed("CO-ASSIGN-02", f"the store lists {len(mine)} jobs of {node} of {_MANY}")
    leaving = cluster.leave(node)
    await leaving.ends()
    missing = sorted(mine - await cluster.store.jobs_of(await cluster.id_of(other)))
    demand(not missing, f"all jobs of {node} on the list of {other}", f"not there: {', '.join(missing)}", "at its exit")
