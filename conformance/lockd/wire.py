"""The lockd wire, pure: builds requests, reads replies. No sockets here, so load users share it.

Times on /v1/tc/* are Unix milliseconds, whatever their names say; `expires_at_unix` of a transaction is in seconds. A
list that is `null` is an empty one, and a field that is left out is zero or empty. What the protocol calls equal is
read as equal: endpoints in one spelling (`endpoints.canonical`), numbers in whatever form JSON allows.
"""

import base64
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.shared import wire as shared
from holdfast.conformance.shared.wire import Request, as_said

LEADER, ACQUIRE = "/v1/tc/leader", "/v1/tc/lease/acquire"
RENEW, RELEASE = "/v1/tc/lease/renew", "/v1/tc/lease/release"
ANNOUNCE, LEAVE, MEMBERS = "/v1/tc/cluster/announce", "/v1/tc/cluster/leave", "/v1/tc/cluster/list"
REGISTER, UNREGISTER, BACKENDS = "/v1/tc/rm/register", "/v1/tc/rm/unregister", "/v1/tc/rm/list"
DECIDE, COMMIT, ROLLBACK, REPLAY = "/v1/txn/decide", "/v1/txn/commit", "/v1/txn/rollback", "/v1/txn/replay"
HEALTH = "/healthz"
CLIENT_ROUTES = (LEADER, ACQUIRE, RENEW, RELEASE, MEMBERS, BACKENDS)
SERVER_ROUTES = (ANNOUNCE, LEAVE, REGISTER, UNREGISTER)
XID = re.compile(r"[0-9a-v]{19}[0g]")

# The status that belongs to each error code.
STATUS_OF: dict[str, int] = {
    **dict.fromkeys(("tc_term_required", "invalid_body", "invalid_term", "invalid_ttl", "invalid_endpoint"), 400),
    **dict.fromkeys(("missing_candidate_id", "missing_candidate_endpoint", "missing_leader_id"), 400),
    **dict.fromkeys(("missing_self_endpoint", "invalid_self_endpoint"), 400),
    **dict.fromkeys(("missing_backend_hash", "missing_endpoint"), 400),
    **dict.fromkeys(("missing_txn_id", "invalid_txn_id", "invalid_state", "invalid_namespace", "invalid_key"), 400),
    **dict.fromkeys(("tc_forbidden", "tc_client_required", "tc_server_required"), 403),
    **dict.fromkeys(("tc_cluster_identity_missing", "namespace_forbidden"), 403),
    "txn_not_found": 404,
    **dict.fromkeys(("tc_not_leader", "tc_term_stale", "tc_lease_active", "txn_conflict", "txn_pending"), 409),
    "txn_backend_mismatch": 409,
    "tc_cluster_sync_failed": 500,
    **dict.fromkeys(("tc_rm_replication_failed", "txn_fanout_failed"), 502),
    **dict.fromkeys(("tc_unavailable", "tc_cluster_unavailable", "tc_rm_unavailable", "node_passive"), 503),
}
STATUS_IN_THE_DOCUMENT = frozenset({"tc_rm_replication_failed"})


@dataclass(frozen=True)
class Leader:
    """What a node says about the leader. It may be no valid one: a vote or an expired lease leaves a record too."""

    id: str = ""
    endpoint: str = ""
    term: int = 0
    expires_at: int = 0

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> "Leader":
        figures = {name: number(fields.get(name)) for name in ("term", "expires_at")}
        endpoint = canonical(str(fields.get("leader_endpoint") or ""))
        return cls(str(fields.get("leader_id") or ""), endpoint, **figures)

    def valid(self, now_ms: float) -> bool:
        return bool(self.endpoint) and self.term > 0 and self.expires_at > now_ms

    def fields(self) -> dict[str, Any]:
        named = {"leader_id": self.id, "leader_endpoint": self.endpoint}
        return {k: v for k, v in {**named, "term": self.term, "expires_at": self.expires_at}.items() if v}

    def describe(self) -> str:
        place = self.endpoint or "nowhere"
        return f"leader {self.id or 'nobody'} at {place}, term {self.term}, until {self.expires_at}"


# Fields of an answer that verdicts rest on, besides its lists.
_LEASE = ("granted", "renewed", "released", "leader_id", "leader_endpoint", "term", "expires_at")
_LISTS = ("endpoints", "backends")
_TELLING = ("state", *_LEASE, "updated_at_unix", "expires_at_unix", "backend_hash")


def _listed(entries: Any) -> str:
    """Returns a list of endpoints, or of backends with their endpoints, as a transcript shows it."""
    texts = [
        f"{each.get('backend_hash')} ({_listed(each.get('endpoints'))})" if isinstance(each, dict) else str(each)
        for each in entries or []
    ]
    return ", ".join(texts) or "none"


@dataclass(frozen=True, repr=False)
class Answer(shared.Answer):
    """What came back; no answer (status 0) may also mean that TLS failed, and `text` says how."""

    handshake_failed: bool = False

    @property
    def ok(self) -> bool:
        return self.status == 200

    @property
    def late(self) -> bool:
        """Whether slowness may explain it: no answer, or a status which says that another party gave none in time."""
        return (not self.answered and not self.handshake_failed) or self.status in (502, 503)

    @property
    def code(self) -> str:
        return str(self.fields.get("error") or "")

    @property
    def endpoints(self) -> list[str]:
        return [canonical(str(each)) for each in self.fields.get("endpoints") or []]

    @property
    def leader(self) -> Leader:
        return Leader.of(self.fields)

    @property
    def has_leader(self) -> bool:
        return self.ok and self.leader.valid(self.wall * 1000)

    @property
    def expires_at(self) -> int:
        return number(self.fields.get("expires_at_unix") or self.fields.get("expires_at"))

    @property
    def updated_at(self) -> int:
        return number(self.fields.get("updated_at_unix"))

    @property
    def backends(self) -> dict[str, "Backend"]:
        entries = [entry for entry in self.fields.get("backends") or [] if isinstance(entry, dict)]
        return {str(entry.get("backend_hash")): Backend.of(entry) for entry in entries}

    def describe(self) -> str:
        if not self.answered:
            return f"no TLS ({self.text})" if self.handshake_failed else f"no answer ({self.text})"
        words = [str(self.status), self.code]
        words += [f"{name}: {_listed(self.fields[name])}" for name in _LISTS if name in self.fields]
        words += [f"{name}={as_said(self.fields[name])}" for name in _TELLING if name in self.fields]
        return " ".join(word for word in words if word) if self.fields else super().describe()


@dataclass(frozen=True)
class Backend:
    """One entry of the RM registry."""

    endpoints: tuple[str, ...]
    updated_at: int

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "Backend":
        ends = tuple(canonical(str(each)) for each in entry.get("endpoints") or ())
        return cls(ends, number(entry.get("updated_at_unix")))

    def describe(self) -> str:
        return f"{_listed(self.endpoints)}, updated at {self.updated_at}"


@dataclass(frozen=True)
class Success:
    """A legal answer: 200, with these fields."""

    fields: Mapping[str, Any]

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.ok and _all_same(seen, self.fields)

    def describe(self) -> str:
        return " ".join(["200", *_wanted(self.fields)])


@dataclass(frozen=True)
class Refusal:
    """A legal answer: this code with an error status, and these fields where they are given.

    The document fixes one status. The others are the contract's, and only the rows that are about them hold a target to
    them (`with_status`): a server with another status would otherwise fail dozens of rows for one difference.
    """

    code: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    with_status: bool = False

    def matches(self, seen: Any) -> bool:
        if not isinstance(seen, Answer) or seen.code != self.code or seen.status < HTTPStatus.BAD_REQUEST:
            return False
        return (seen.status == self._status or not self._fixed) and _all_same(seen, self.fields)

    @property
    def _status(self) -> int:
        return STATUS_OF[self.code]

    @property
    def _fixed(self) -> bool:
        return self.with_status or self.code in STATUS_IN_THE_DOCUMENT

    def describe(self) -> str:
        status = str(self._status) if self._fixed else ""
        return " ".join(word for word in (status, self.code, *_wanted(self.fields)) if word)


@dataclass(frozen=True)
class Conflict:
    """A legal answer: a conflict, whatever its code."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.status == HTTPStatus.CONFLICT

    def describe(self) -> str:
        return "a conflict (409)"


@dataclass(frozen=True)
class NoHandshake:
    """The TLS handshake fails, so there is no HTTP answer at all."""

    def matches(self, seen: Any) -> bool:
        return isinstance(seen, Answer) and seen.handshake_failed

    def describe(self) -> str:
        return "a failed TLS handshake"


def _wanted(fields: Mapping[str, Any]) -> list[str]:
    """Returns fields in the words of `Answer.describe`, so that expected and seen compare at a glance."""
    return [
        f"{name}: {_listed(value)}" if name in _LISTS else f"{name}={as_said(value)}" for name, value in fields.items()
    ]


def _all_same(seen: Answer, wanted: Mapping[str, Any]) -> bool:
    return all(same(name, seen.fields.get(name), value) for name, value in wanted.items())


def ok(**fields: Any) -> Success:
    return Success(fields)


def refused(code: str, **fields: Any) -> Refusal:
    return Refusal(code, fields)


def refused_with_status(code: str) -> Refusal:
    """The refusal with this code and with the status that the contract has for it."""
    return Refusal(code, with_status=True)


def stale_term() -> tuple[Refusal, Conflict]:
    """The legal answers to an apply whose term is not the current one: "tc_term_stale or conflict errors"."""
    return refused("tc_term_stale"), Conflict()


def no_vote() -> tuple[Refusal, Refusal]:
    """The legal answers to a lease call that is refused: the document says when it is, and not with which code."""
    return refused("tc_lease_active"), refused("tc_term_stale")


def no_handshake() -> NoHandshake:
    return NoHandshake()


@dataclass(frozen=True)
class Dialect:
    """What the spec leaves to the target: names that it gives only as examples, and start variants it may have.

    Where the public implementation departs from the spec, that is no dialect: it fails those rows.
    """

    guard_header: str = "X-Lockd-TC-Leave-Fanout"
    replica_header: str = "X-Lockd-TC-Replicate"
    health: str = HEALTH
    # Values of the setting `store`: one that outlives the process, and one that several nodes share.
    durable_store: str = ""
    shared_store: str = ""
    # In a deployment that Holdfast did not start: the node that has no other real member.
    lone_node: str = ""

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> "Dialect":
        known = {name: str(table[name]) for name in cls.__dataclass_fields__ if name in table}
        return cls(**known)

    @property
    def guard(self) -> dict[str, str]:
        return {self.guard_header: "1"}

    @property
    def replica(self) -> dict[str, str]:
        return {self.replica_header: "1"}


def leader() -> Request:
    return Request("GET", LEADER)


def acquire(candidate: str, endpoint: str, term: int, ttl_ms: int) -> Request:
    body = {"candidate_id": candidate, "candidate_endpoint": endpoint, "term": term, "ttl_ms": ttl_ms}
    return Request("POST", ACQUIRE, body)


def renew(leader_id: str, term: int, ttl_ms: int) -> Request:
    return Request("POST", RENEW, {"leader_id": leader_id, "term": term, "ttl_ms": ttl_ms})


def release(leader_id: str, term: int) -> Request:
    return Request("POST", RELEASE, {"leader_id": leader_id, "term": term})


def announce(endpoint: str) -> Request:
    return Request("POST", ANNOUNCE, {"self_endpoint": endpoint})


def leave(headers: Mapping[str, str] | None = None) -> Request:
    return Request("POST", LEAVE, {}, headers or {})


def members() -> Request:
    return Request("GET", MEMBERS)


def register(backend: str, endpoint: str, headers: Mapping[str, str] | None = None) -> Request:
    return Request("POST", REGISTER, {"backend_hash": backend, "endpoint": endpoint}, headers or {})


def unregister(backend: str, endpoint: str, headers: Mapping[str, str] | None = None) -> Request:
    return Request("POST", UNREGISTER, {"backend_hash": backend, "endpoint": endpoint}, headers or {})


def backends() -> Request:
    return Request("GET", BACKENDS)


def participant(namespace: str, key: str, backend: str | None = None) -> dict[str, str]:
    return {"namespace": namespace, "key": key, **({"backend_hash": backend} if backend else {})}


def decide(
    txn: str,
    state: str,
    participants: Iterable[Mapping[str, str]] = (),
    *,
    term: int | None = None,
    expires: int | None = None,
) -> Request:
    return Request("POST", DECIDE, {"state": state, **_transaction(txn, participants, term, expires)})


def apply(txn: str, state: str, participants: Iterable[Mapping[str, str]] = (), *, term: int | None = None) -> Request:
    path = {"commit": COMMIT, "rollback": ROLLBACK}[state]
    return Request("POST", path, _transaction(txn, participants, term, None))


def replay(txn: str) -> Request:
    return Request("POST", REPLAY, {"txn_id": txn})


def _transaction(
    txn: str, participants: Iterable[Mapping[str, str]], term: int | None, expires: int | None
) -> dict[str, Any]:
    given = {"participants": [dict(each) for each in participants], "tc_term": term, "expires_at_unix": expires}
    return {"txn_id": txn, **{name: value for name, value in given.items() if value}}


def xid(random_bytes: bytes) -> str:
    """Returns a transaction id: twelve bytes in lower-case base32hex without padding."""
    if len(random_bytes) != 12:
        raise ValueError("an xid has twelve bytes")
    return base64.b32hexencode(random_bytes).decode().rstrip("=").lower()


def number(value: Any) -> int:
    """Returns a JSON number as an integer, whatever its form (7, 7.0, 7e0); 0 for everything else."""
    if isinstance(value, bool):
        return 0
    return int(value) if isinstance(value, int) or (isinstance(value, float) and value.is_integer()) else 0


def same(name: str, seen: Any, wanted: Any) -> bool:
    """Whether two values of this field are equal in the protocol."""
    if name.endswith("endpoint"):
        return isinstance(seen, str) and canonical(seen) == canonical(str(wanted))
    if name.endswith("endpoints"):
        return [canonical(str(each)) for each in seen or []] == [canonical(str(each)) for each in wanted]
    return bool(seen == wanted)
