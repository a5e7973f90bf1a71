"""Violations of forwarding and term fencing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference.lockd.identity import Caller
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.seen import Seen
from holdfast.reference.lockd.txns import Request, Txns, outcome
from holdfast.reference.lockd.wire import Refusal


class DecidesLocally(Txns):
    async def decided(self, request: Request, term: int = 0) -> Any:
        await self.record(replace(request, tc_term=term), self.no_condition)
        return outcome(request.txn_id, request.state)


@violates("TC-TXN-01", 1, "The leader answers 200 without recording, so a contradicting decision gets 200 too.")
class Unrecorded(Txns):
    async def decide_here(self, request: Request, leader: Seen) -> Any:  # noqa: ARG002  # the seam's form
        return outcome(request.txn_id, request.state)


@violates(
    "TC-TXN-01", 2, "The follower answers a redirect or tc_not_leader instead of forwarding.", also=("TC-TXN-05",)
)
class NeverForwards(Txns):
    async def forward(self, request: Request, leader: Seen, headers: Mapping[str, str]) -> Any:  # noqa: ARG002  # the seam's form
        raise self.not_leader(leader, "Ask the leader.")


@violates("TC-TXN-01", 3, "The follower records the decision itself.")
class FollowerRecords(DecidesLocally):
    async def forward(self, request: Request, leader: Seen, headers: Mapping[str, str]) -> Any:
        reply = await super().forward(request, leader, headers)
        await self.decided(request, leader.term)
        return reply


@violates("TC-TXN-01", 4, "Participants are dropped when forwarding.")
class DropsParticipants(Txns):
    def to_forward(self, request: Request) -> dict[str, Any]:
        return replace(request, participants=()).fields()


@violates("TC-TXN-02", 1, "The follower decides by itself.")
class DecidesAlone(DecidesLocally):
    async def forward(self, request: Request, leader: Seen, headers: Mapping[str, str]) -> Any:
        try:
            return await super().forward(request, leader, headers)
        except Refusal as refusal:
            if refusal.code != "tc_not_leader":
                raise
            return await self.decided(request, leader.term)


@violates("TC-TXN-02", 2, "The follower answers a generic 500 or 502.")
class GenericError(Txns):
    def not_leader(self, leader: Seen, why: str) -> Refusal:  # noqa: ARG002  # the seam's form
        return Refusal(502, "bad_gateway", why)


@violates("TC-TXN-02", 3, "leader_endpoint is empty or the follower's own.")
class OwnEndpoint(Txns):
    def not_leader(self, leader: Seen, why: str) -> Refusal:  # noqa: ARG002  # the seam's form
        return Refusal(409, "tc_not_leader", why, self.node.settings.self_endpoint)


@violates("TC-TXN-02", 4, "The decision is stored before it is forwarded.", also=("TC-TXN-01",))
class StoredFirst(DecidesLocally):
    async def forward(self, request: Request, leader: Seen, headers: Mapping[str, str]) -> Any:
        await self.decided(request, leader.term)
        return await super().forward(request, leader, headers)


@violates("TC-TXN-03", 1, "The leaderless node records the decision locally.", also=("TC-STEP-03", "TC-TXN-04"))
class LeaderlessRecords(DecidesLocally):
    async def decide(self, body: Mapping[str, Any], headers: Mapping[str, str], caller: Caller | None) -> Any:
        try:
            return await super().decide(body, headers, caller)
        except Refusal as refusal:
            if refusal.code == "tc_unavailable":
                await self.decided(Request(str(body["txn_id"]), str(body["state"])))
            raise


@violates("TC-TXN-03", 2, "Without a leader the apply fence is skipped.")
class FenceSkipped(Txns):
    def check_term(self, request: Request) -> None:
        if self.node.election.current_leader() is not None:
            super().check_term(request)


@violates(
    "TC-TXN-03", 3, "The refusal is tc_not_leader with an empty leader_endpoint.", also=("TC-STEP-03", "TC-TXN-04")
)
class NotLeaderInstead(Txns):
    def known_leader(self) -> Seen:
        try:
            return super().known_leader()
        except Refusal:
            raise Refusal(409, "tc_not_leader") from None


@violates("TC-TXN-04", 1, "With election off the node treats itself as stand-alone and commits locally.")
class StandAlone(DecidesLocally):
    async def decide(self, body: Mapping[str, Any], headers: Mapping[str, str], caller: Caller | None) -> Any:
        if not self.node.election.enabled:
            return await self.decided(Request(str(body["txn_id"]), str(body["state"])))
        return await super().decide(body, headers, caller)


@violates("TC-TXN-05", 1, "Every non-200 answer of the leader becomes tc_not_leader.")
class AllNotLeader(Txns):
    def passed_back(self, status: int, body: Mapping[str, Any], leader: Seen) -> Refusal:  # noqa: ARG002  # the seam's form
        return self.not_leader(leader, str(status))


@violates("TC-TXN-06", 1, "A missing term is treated as current.", also=("TC-JOIN-01",))
class MissingIsCurrent(Txns):
    def check_term(self, request: Request) -> None:
        super().check_term(replace(request, tc_term=request.tc_term or self.known_leader().term))


@violates("TC-TXN-06", 2, "The term is compared only with the stored transaction record.", also=("TC-TXN-07",))
class RecordOnly(Txns):
    def term_fits(self, given: int, current: int) -> bool:  # noqa: ARG002  # the seam's form
        return True


@violates("TC-TXN-06", 3, "A term above the current one is accepted.")
class HigherAccepted(Txns):
    def term_fits(self, given: int, current: int) -> bool:
        return given >= current


@violates("TC-TXN-06", 4, "Applies are accepted only from the leader's certificate or address.")
class LeaderOnly(Txns):
    async def apply(self, body: Mapping[str, Any], state: str, caller: Caller | None) -> Any:
        leader = self.node.election.current_leader()
        if leader and caller and body.get("tc_term") == leader.term and leader.leader_id not in "".join(caller.uris):
            raise Refusal(403, "tc_forbidden")
        return await super().apply(body, state, caller)


@violates("TC-TXN-07", 1, "An RM keeps the first term it ever saw as current.")
class FirstTerm(Txns):
    first = 0

    def term_fits(self, given: int, current: int) -> bool:
        if given == current and not self.first:
            self.first = current
        return given == (self.first or current)


@violates("TC-TXN-08", 1, "tc_term is sent only when the client supplied one.")
class OnlyIfSupplied(Txns):
    supplied = False

    def term_for(self, request: Request, leader: Seen) -> int:
        self.supplied = bool(request.tc_term)
        return super().term_for(request, leader)

    def to_apply(self, request: Request) -> dict[str, Any]:
        return request.fields() if self.supplied else replace(request, tc_term=0).fields()


@violates("TC-TXN-08", 2, "The client's tc_term is passed on unchanged.")
class ClientsTerm(Txns):
    given = 0

    def term_for(self, request: Request, leader: Seen) -> int:
        self.given = request.tc_term
        return super().term_for(request, leader)

    def to_apply(self, request: Request) -> dict[str, Any]:
        return replace(request, tc_term=self.given or request.tc_term).fields()


@violates("TC-TXN-09", 1, "The second identical apply answers 409.")
class NotTwice(Txns):
    def merge_decision(self, known: Mapping[str, Any] | None, request: Request) -> Any:
        if known is not None and known["state"] == request.state != "pending":
            raise Refusal(409, "txn_conflict")
        return super().merge_decision(known, request)


@violates("TC-TXN-09", 2, "The last writer wins.", also=("TC-TXN-01",))
class LastWins(Txns):
    def merge_decision(self, known: Mapping[str, Any] | None, request: Request) -> Any:  # noqa: ARG002  # the seam's form
        return self.made(request)
