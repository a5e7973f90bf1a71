"""Transactions (spec: Non-leader forwarding and term fencing): decided by the leader, applied under its term.

A client may send its decision to any node. Only the leader records it:

- Without a valid leader the node answers `tc_unavailable` and records nothing.
- A follower forwards to the leader and passes the answer back. If the leader does not answer, it is `tc_not_leader`
  with the endpoint of that leader. A request is forwarded once only, or two nodes that take each other for the leader
  would send it back and forth.
- The leader stamps its own term, whatever the client sent, records the decision, and applies it at the islands of the
  participants.

The leader proves its leadership inside the write (`still_leader`), not before it: its lease may run out while the
store is busy, and a decision of a former leader could contradict one of the next.

An apply is fenced. The RM compares `tc_term` with the term of the leader that it knows, and refuses any other: a
lower one is that of a former leader, a higher one that of a leader it has not heard of. Without a leader it refuses
too, because it cannot tell.

A record is final once it is a commit or a rollback. The same decision again is answered as before, so a client or
leader that got no answer may repeat it; the other one is a conflict. `pending` never replaces a decision, and a
record never goes back to a lower term.

A fan-out that fails does not take the decision back: it is recorded, the answer is 502, and a repetition applies it
at the islands that are missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.ids import is_xid
from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.seen import Seen
from holdfast.reference.lockd.wire import Refusal, list_of, number_of, present, term_of, text_of

if TYPE_CHECKING:
    from holdfast.reference.lockd.identity import Caller
    from holdfast.reference.lockd.node import Node

NAMESPACE = ".txns"
DEFAULT_NAMESPACE = "default"
FORWARDED = "X-Lockd-TC-Forwarded"
STATES = ("pending", "commit", "rollback")
LONGEST_NAME = 512


@dataclass(frozen=True)
class Request:
    txn_id: str
    state: str
    participants: tuple[Mapping[str, str], ...] = ()
    expires_at_unix: int = 0
    tc_term: int = 0
    target_backend_hash: str = ""

    def fields(self) -> dict[str, Any]:
        return {
            "txn_id": self.txn_id,
            "state": self.state,
            **present(
                {
                    "participants": [dict(each) for each in self.participants],
                    "expires_at_unix": self.expires_at_unix,
                    "tc_term": self.tc_term,
                    "target_backend_hash": self.target_backend_hash,
                }
            ),
        }


def read_request(body: Mapping[str, Any], state: str = "") -> Request:
    txn_id = read_txn_id(body)
    state = state or text_of(body, "state")
    if state not in STATES:
        raise Refusal(400, "invalid_state", f"state must be one of {', '.join(STATES)}.")
    return Request(
        txn_id,
        state,
        tuple(_participant(each) for each in list_of(body, "participants")),
        number_of(body, "expires_at_unix"),
        term_of(body, "tc_term"),
        text_of(body, "target_backend_hash"),
    )


def read_txn_id(body: Mapping[str, Any]) -> str:
    txn_id = text_of(body, "txn_id")
    if not txn_id:
        raise Refusal(400, "missing_txn_id")
    if not is_xid(txn_id):
        raise Refusal(400, "invalid_txn_id", "txn_id must have 20 characters of base32hex.")
    return txn_id


def _participant(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Refusal(400, "invalid_body", "A participant must be an object.")
    namespace, backend = text_of(value, "namespace"), text_of(value, "backend_hash")
    key = value["key"] if text_of(value, "key") else ""
    if len(namespace) > LONGEST_NAME or "/" in namespace:
        raise Refusal(400, "invalid_namespace")
    if not key or len(key) > LONGEST_NAME:
        raise Refusal(400, "invalid_key")
    if len(backend) > LONGEST_NAME:
        raise Refusal(400, "invalid_backend_hash")
    return present({"namespace": namespace, "key": key, "backend_hash": backend})


class Txns:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def decide(self, body: Mapping[str, Any], headers: Mapping[str, str], caller: "Caller | None") -> Any:
        request = read_request(body)
        self.authorize(request, caller)
        leader = self.known_leader()
        if not self.is_own(leader):
            return await self.forward(request, leader, headers)
        return await self.decide_here(request, leader)

    async def apply(self, body: Mapping[str, Any], state: str, caller: "Caller | None") -> Any:
        request = read_request(body, state)
        self.authorize(request, caller)
        self.check_term(request)
        self.check_backend(request)
        if not request.participants:
            return await self.look_up(request)
        await self.record(request, self.no_condition)
        return outcome(request.txn_id, request.state)

    async def replay(self, body: Mapping[str, Any], caller: "Caller | None") -> Any:
        txn_id = read_txn_id(body)
        self.node.identity.authorize_namespaces(caller, set())
        return outcome(txn_id, (await self.stored(txn_id))["state"])

    def authorize(self, request: Request, caller: "Caller | None") -> None:
        namespaces = {each.get("namespace", DEFAULT_NAMESPACE) for each in request.participants}
        self.node.identity.authorize_namespaces(caller, namespaces)

    def known_leader(self) -> Seen:
        leader = self.node.election.current_leader()
        if leader is None:
            raise self.node.election.unavailable()
        return leader

    def is_own(self, leader: Seen) -> bool:
        return self.node.election.is_me(leader)

    # Deciding.

    async def decide_here(self, request: Request, leader: Seen) -> Any:
        request = replace(request, tc_term=self.term_for(request, leader))
        await self.record(request, self.still_leader)
        self.node.events.emit("txn.tc.decide.recorded", txn_id=request.txn_id, state=request.state)
        if request.state != "pending":
            await self.fan_out_apply(request)
        return outcome(request.txn_id, request.state)

    def term_for(self, request: Request, leader: Seen) -> int:  # noqa: ARG002  # a seam
        return leader.term

    def still_leader(self, request: Request) -> None:
        """Refuses the write when this node no longer leads in the term that it has stamped."""
        leader = self.node.election.current_leader()
        if leader is None or not self.is_own(leader) or leader.term != request.tc_term:
            raise self.node.election.unavailable()

    def no_condition(self, request: Request) -> None:
        """Accepts the write: an apply was fenced before it."""

    async def forward(self, request: Request, leader: Seen, headers: Mapping[str, str]) -> Any:
        if headers.get(FORWARDED, "").strip():
            raise self.not_leader(leader, "The request was forwarded before.")
        url = f"{leader.leader_endpoint}/v1/txn/decide"
        try:
            reply = await self.node.peers.call("transaction", "POST", url, self.to_forward(request), {FORWARDED: "1"})
        except PeerFailed as failed:
            raise self.not_leader(leader, str(failed)) from None
        if reply.ok:
            return dict(reply.body)
        raise self.passed_back(reply.status, reply.body, leader)

    def to_forward(self, request: Request) -> dict[str, Any]:
        return request.fields()

    def passed_back(self, status: int, body: Mapping[str, Any], leader: Seen) -> Refusal:  # noqa: ARG002  # a seam
        code, texts = body.get("error"), [body.get("detail"), body.get("leader_endpoint")]
        if not isinstance(code, str) or not code or not 400 <= status < 600:
            return Refusal(502, "tc_forward_failed", f"The leader answered {status} without a reason.")
        return Refusal(status, code, *(text if isinstance(text, str) else "" for text in texts))

    def not_leader(self, leader: Seen, why: str) -> Refusal:
        return Refusal(409, "tc_not_leader", why, leader.leader_endpoint)

    # Applying.

    def check_term(self, request: Request) -> None:
        leader = self.known_leader()
        if not request.tc_term:
            raise Refusal(400, "tc_term_required", "An apply must carry the term of the leader.")
        if not self.term_fits(request.tc_term, leader.term):
            raise Refusal(409, "tc_term_stale", f"The term is {leader.term}.", leader.leader_endpoint)

    def term_fits(self, given: int, current: int) -> bool:
        return given == current

    def check_backend(self, request: Request) -> None:
        if request.target_backend_hash and request.target_backend_hash != self.node.island.hash:
            raise Refusal(409, "txn_backend_mismatch", "The apply is for another backend.")

    async def look_up(self, request: Request) -> Any:
        """Answers an apply without participants: it applies nothing, but must agree with the record."""
        state = (await self.stored(request.txn_id))["state"]
        if state == "pending":
            raise Refusal(409, "txn_pending")
        if state != request.state:
            raise Refusal(409, "txn_conflict", f"The transaction was decided as {state}.")
        return outcome(request.txn_id, state)

    # Records.

    async def stored(self, txn_id: str) -> Mapping[str, Any]:
        found = await self.node.island.read(NAMESPACE, txn_id)
        if found is None:
            raise Refusal(404, "txn_not_found")
        return dict(found)

    async def record(self, request: Request, condition: Any) -> None:
        def edit(known: Any) -> Any:
            condition(request)
            return self.merge_decision(known, request)

        await self.node.island.change(NAMESPACE, request.txn_id, edit)

    def merge_decision(self, known: Mapping[str, Any] | None, request: Request) -> Any:
        """Returns the record after the request, or refuses what a record rules out."""
        if known is None:
            return self.made(request)
        if known["tc_term"] and not request.tc_term:
            raise Refusal(400, "tc_term_required")
        if known["tc_term"] > request.tc_term:
            raise Refusal(409, "tc_term_stale", f"The record has the term {known['tc_term']}.")
        if known["state"] != "pending" and request.state not in {known["state"], "pending"}:
            raise Refusal(409, "txn_conflict", f"The transaction was decided as {known['state']}.")
        if known["state"] != "pending" and request.state == "pending":
            return known
        return self.made(request)

    def made(self, request: Request) -> dict[str, Any]:
        return {"tc_term": 0, **request.fields()}

    async def fan_out_apply(self, request: Request) -> None:
        """Applies a decision at the other islands of the participants, one after the other."""
        failed = []
        for backend, participants in self.by_backend(request.participants).items():
            there = replace(request, participants=tuple(participants), target_backend_hash=backend)
            if not await self.apply_at_one(there, await self.node.registry.endpoints_of(backend)):
                failed.append(backend)
        if failed:
            raise Refusal(502, "txn_fanout_failed", f"Not applied at {', '.join(failed)}; the decision stays recorded.")

    def by_backend(self, participants: Sequence[Mapping[str, str]]) -> dict[str, list[Mapping[str, str]]]:
        groups: dict[str, list[Mapping[str, str]]] = {}
        for each in participants:
            backend = each.get("backend_hash") or self.node.island.hash
            if backend != self.node.island.hash:
                groups.setdefault(backend, []).append(each)
        return groups

    async def apply_at_one(self, request: Request, endpoints: Sequence[str]) -> bool:
        for endpoint in endpoints:
            url = f"{endpoint}/v1/txn/{request.state}"
            why = await self.node.peers.accepts("transaction", url, self.to_apply(request))
            if not why or "txn_conflict" in why:  # counts as applied: no retry changes the record there
                return True
        return False

    def to_apply(self, request: Request) -> dict[str, Any]:
        return request.fields()


def outcome(txn_id: str, state: str) -> dict[str, Any]:
    return {"txn_id": txn_id, "state": state}
