"""An isolated leader (seed: Step-down and quorum loss; Test Expectations)."""

from holdfast.check.faults import Faults
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.quorum import isolated_leader


@verifies("TC-STEP-08", isolation="disruptive", waits="cluster_leader_max + next_tick_max + two_leader_ttl + heal_max")
async def test_an_isolated_leader_falls_silent_and_follows_after_healing(lockd: Lockd, faults: Faults) -> None:
    await isolated_leader(lockd, faults, "refuse", "lease_settled_max")
