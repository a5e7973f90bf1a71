"""Walks over the model of the spec (`walks/`): commands drawn from a seed, everything compared after each step."""

from functools import partial

from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.walk.campaign import Ground, Walks
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.walks.model import LockdModel
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.stage import Stages
from holdfast.conformance.lockd.walks.state import State
from holdfast.conformance.lockd.walks.world import LockdWorld

WALKERS = 6
# The rows that rules of the model state.
ROWS = (
    "TC-AUTH-02",
    "TC-DATA-02",
    "TC-ELECT-03",
    "TC-ELECT-04",
    "TC-ELECT-05",
    "TC-ELECT-06",
    "TC-ELECT-08",
    "TC-JOIN-01",
    "TC-LEAVE-01",
    "TC-LEAVE-02",
    "TC-LEAVE-03",
    "TC-LEAVE-04",
    "TC-LEAVE-05",
    "TC-LEAVE-06",
    "TC-LEAVE-10",
    "TC-LEAVE-11",
    "TC-LOOP-01",
    "TC-MEMBER-01",
    "TC-MEMBER-03",
    "TC-MEMBER-04",
    "TC-MEMBER-05",
    "TC-PEER-03",
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
    walkers = WALKERS if lockd.context.target.startable else 1
    stages = Stages(lockd, walkers)

    async def begin() -> Ground[State]:
        stage = await stages.take()
        done = partial(stages.give_back, stage)
        try:
            start = await stage.begin()
        except BaseException:
            done()
            raise
        return Ground(LockdModel(Spans.of(T)), LockdWorld(stage, start.floor, done), start)

    await walks.run(begin, walkers=walkers)
