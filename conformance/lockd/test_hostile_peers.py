"""Peers that answer nonsense: they are worth as much as peers that do not answer, and no more."""

import pytest

from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy_cluster import leaderless
from holdfast.conformance.shared.stub import Reply

# Answers of GET /v1/tc/leader with a record that nobody can follow.
NONSENSE: dict[str, dict[str, object]] = {
    "a text as term": {"leader_id": "x", "leader_endpoint": "https://127.0.0.1:1", "term": "first", "expires_at": 1},
    "a text as expiry": {"leader_id": "x", "leader_endpoint": "https://127.0.0.1:1", "term": 1, "expires_at": "soon"},
    "objects as names": {"leader_id": {}, "leader_endpoint": [], "term": 1, "expires_at": 1},
}


@pytest.mark.parametrize("kind", NONSENSE)
@verifies("TC-ELECT-03", isolation="quiet", nodes=1, waits="4*lease_settled_max")
async def test_one_peer_that_answers_nonsense_does_not_keep_a_quorum_from_electing(
    lockd: Lockd, T: SpecTime, kind: str
) -> None:
    node, (odd, good) = await leaderless(lockd, 2)
    odd.on(wire.LEADER, Reply(200, NONSENSE[kind]))
    since = T.now()
    await odd.receives(wire.LEADER, "lease_settled_max", since=since, judged=False, what="a question for the leader")
    good.grant_votes()
    leader, _ = await lockd.leads(node)
    await lockd.decides(node, f"the node leads in term {leader.term} with two of three votes", owner="TC-ELECT-03")
