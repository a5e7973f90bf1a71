"""Walks over the model of the spec (`walks/`): commands drawn from a seed, everything compared after each step."""

import itertools
from collections.abc import Callable
from functools import partial

from holdfast.check.finding import NotObservable
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.walk.campaign import Ground, Walks
from holdfast.check.walk.turns import Turns
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.walks.cluster.model import ClusterModel
from holdfast.conformance.lockd.walks.cluster.state import NODES, Cluster
from holdfast.conformance.lockd.walks.cluster.world import ClusterWorld
from holdfast.conformance.lockd.walks.commands import CRASH, STOP
from holdfast.conformance.lockd.walks.model import LockdModel
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.stage import Stage
from holdfast.conformance.lockd.walks.state import STRANGER, State
from holdfast.conformance.lockd.walks.world import LockdWorld
from holdfast.spec.capability import Capability

WALKERS = 4
# The rows that rules of the model state.
ROWS = (
    "TC-AUTH-02",
    "TC-DATA-02",
    "TC-DATA-04",
    "TC-ELECT-01",
    "TC-ELECT-02",
    "TC-ELECT-03",
    "TC-ELECT-04",
    "TC-ELECT-05",
    "TC-ELECT-06",
    "TC-ELECT-08",
    "TC-IDENT-03",
    "TC-JOIN-01",
    "TC-JOIN-06",
    "TC-LEAVE-01",
    "TC-LEAVE-02",
    "TC-LEAVE-03",
    "TC-LEAVE-04",
    "TC-LEAVE-05",
    "TC-LEAVE-06",
    "TC-LEAVE-09",
    "TC-LEAVE-10",
    "TC-LEAVE-11",
    "TC-LOOP-01",
    "TC-LOOP-02",
    "TC-MEMBER-01",
    "TC-MEMBER-02",
    "TC-MEMBER-03",
    "TC-MEMBER-04",
    "TC-MEMBER-05",
    "TC-MEMBER-06",
    "TC-PEER-03",
    "TC-RM-01",
    "TC-RM-03",
    "TC-RM-04",
    "TC-RM-05",
    "TC-RM-06",
    "TC-RM-07",
    "TC-RM-08",
    "TC-RM-10",
    "TC-STEP-01",
    "TC-STEP-02",
    "TC-STEP-03",
    "TC-STEP-05",
    "TC-TXN-01",
    "TC-TXN-02",
    "TC-TXN-03",
    "TC-TXN-04",
    "TC-TXN-06",
    "TC-TXN-08",
    "TC-TXN-09",
)


# Those of them that rules about two nodes state too.
CLUSTER_ROWS = (
    "TC-DATA-02",
    "TC-ELECT-05",
    "TC-JOIN-01",
    "TC-LEAVE-01",
    "TC-LEAVE-11",
    "TC-LOOP-02",
    "TC-MEMBER-01",
    "TC-MEMBER-03",
    "TC-MEMBER-04",
    "TC-MEMBER-05",
    "TC-RM-05",
    "TC-RM-08",
    "TC-RM-10",
    "TC-TXN-01",
    "TC-TXN-06",
    "TC-TXN-09",
)


@verifies(
    *ROWS,
    isolation="quiet",
    nodes=1,
    waits="member_expiry_settled + lease_settled_max",
    walk_steps=240,
    needs=["wire"],
)
async def test_whatever_peers_and_clients_do_leaves_what_the_model_says(
    lockd: Lockd, walks: Walks, T: SpecTime
) -> None:
    """Each walker has a node of its own, all of whose peers it plays."""
    await _walk_on_one_node(lockd, walks, T, WALKERS if lockd.context.target.startable else 1)


@verifies("TC-DATA-05")
@verifies(
    *ROWS,
    isolation="disruptive",
    nodes=1,
    waits="member_expiry_settled + lease_settled_max",
    walk_steps=60,
    needs=["wire", "control.kill", "control.restart"],
)
async def test_whatever_crashes_meanwhile_leaves_what_the_model_says(lockd: Lockd, walks: Walks, T: SpecTime) -> None:
    """The same with a node that is killed or stopped now and then, on a store that outlives it."""
    if not lockd.dialect.durable_store:
        raise NotObservable("[dialect] durable_store: a value of the setting `store` that outlives the process")
    several = lockd.context.target.startable and not walks.short
    shown = lockd.context.target.capabilities() & lockd.context.target.in_profile()
    upsets = (CRASH, STOP) if Capability.CONTROL_TERM in shown else (CRASH,)
    await _walk_on_one_node(lockd, walks, T, WALKERS if several else 1, upsets)


async def _walk_on_one_node(
    lockd: Lockd, walks: Walks, T: SpecTime, walkers: int, upsets: tuple[str, ...] = ()
) -> None:
    async def build(number: int) -> Stage:
        return await Stage.build(await lockd.another() if number else lockd, durable=bool(upsets))

    stages = Turns(build, walkers)

    async def begin(stage: Stage, done: Callable[[], None]) -> Ground[State]:
        start = await stage.begin()
        return Ground(LockdModel(Spans.of(T), upsets), LockdWorld(stage, start.floor, done), start)

    await walks.run(partial(stages.begin, begin), walkers=walkers)


@verifies("TC-ELECT-04", "TC-RM-04", "TC-RM-10", "TC-TXN-01", part=2)
@verifies(
    *CLUSTER_ROWS,
    isolation="quiet",
    nodes=2,
    waits="cluster_leader_max + membership_ttl",
    walk_steps=60,
    needs=["wire", "multi_node"],
)
async def test_whatever_is_done_through_one_node_is_what_the_other_shows(
    lockd: Lockd, walks: Walks, T: SpecTime
) -> None:
    """One walk at a time: the nodes' leases from each other must not depend on how busy we are."""
    if len(lockd.nodes) != len(NODES):
        raise NotObservable("[[node]] start, or a deployment of two nodes")
    stranger, numbers = lockd.authority.server(name=STRANGER), itertools.count(1)

    async def begin() -> Ground[Cluster]:
        world, start = await ClusterWorld.begin(lockd, stranger, next(numbers))
        return Ground(ClusterModel(Spans.of(T), below=start.term > 1), world, start)

    await walks.run(begin, walkers=1)
