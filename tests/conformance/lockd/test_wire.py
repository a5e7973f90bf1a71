import pytest

from holdfast.check.finding import Finding, expect
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.endpoints import canonical
from holdfast.conformance.lockd.wire import Answer, Dialect, Leader, stale_term
from holdfast.conformance.shared.wire import not_status


def _answer(status: int, body: object, wall: float = 1000.0) -> Answer:
    return Answer(status, {}, body, wall=wall)


def test_a_transaction_id_has_twenty_characters_of_base32hex() -> None:
    assert wire.xid(bytes(12)) == "0" * 20
    assert wire.xid(b"\xff" * 12) == "v" * 19 + "g"
    assert all(wire.XID.fullmatch(wire.xid(bytes([number] * 12))) for number in range(256))
    with pytest.raises(ValueError, match="twelve bytes"):
        wire.xid(b"short")


def test_a_leader_is_valid_only_with_endpoint_term_and_a_lease_ahead() -> None:
    full = {"leader_id": "n", "leader_endpoint": "https://h:1", "term": 3, "expires_at": 1_000_001}
    assert _answer(200, full).has_leader
    for missing in ("leader_endpoint", "term", "expires_at"):
        assert not _answer(200, {name: value for name, value in full.items() if name != missing}).has_leader
    assert not _answer(200, {**full, "expires_at": 1_000_000}).has_leader
    assert not _answer(503, full).has_leader


def test_a_vote_leaves_a_record_without_a_leader() -> None:
    assert Leader.of({"term": 4, "expires_at": 9}) == Leader(term=4, expires_at=9)
    assert Leader(term=4).fields() == {"term": 4}


def test_null_lists_are_empty_ones() -> None:
    assert _answer(200, {"endpoints": None, "backends": None}).endpoints == []
    assert _answer(200, {"backends": None}).backends == {}
    entry = {"backend_hash": "h", "endpoints": None, "updated_at_unix": 5}
    assert _answer(200, {"backends": [entry]}).backends == {"h": wire.Backend((), 5)}


def test_a_refusal_is_its_code_and_an_error_status() -> None:
    stale = wire.refused("tc_term_stale", leader_endpoint="https://h:1")
    assert stale.matches(_answer(409, {"error": "tc_term_stale", "leader_endpoint": "https://h:1"}))
    assert not stale.matches(_answer(409, {"error": "tc_term_stale"}))
    assert wire.refused("tc_term_stale").matches(_answer(400, {"error": "tc_term_stale"}))
    assert not wire.refused("tc_term_stale").matches(_answer(200, {"error": "tc_term_stale"}))
    assert not wire.refused("tc_term_stale").matches(_answer(409, {"error": "tc_lease_active"}))


def test_only_the_rows_about_it_demand_the_contracts_status() -> None:
    stale, failed = wire.refused_with_status("tc_term_stale"), wire.refused("tc_rm_replication_failed")
    assert stale.matches(_answer(409, {"error": "tc_term_stale"}))
    assert not stale.matches(_answer(400, {"error": "tc_term_stale"}))
    assert failed.matches(_answer(502, {"error": "tc_rm_replication_failed"}))
    assert not failed.matches(_answer(503, {"error": "tc_rm_replication_failed"})), "the document fixes this one"
    assert stale.describe() == "409 tc_term_stale"
    assert wire.refused("tc_term_stale").describe() == "tc_term_stale"


def test_no_answer_is_neither_success_nor_refusal() -> None:
    silent = Answer(0, {}, None, "after 5 s")
    assert silent.late
    assert not wire.ok().matches(silent)
    assert not not_status(403).matches(silent)
    assert not wire.no_handshake().matches(silent)
    cut = Answer(0, {}, None, "alert", handshake_failed=True)
    assert wire.no_handshake().matches(cut)
    assert not cut.late


def test_requests_leave_out_what_is_not_said() -> None:
    assert wire.decide("t", "commit").body == {"state": "commit", "txn_id": "t"}
    full = wire.decide("t", "commit", [wire.participant("ns", "k", "h")], term=3, expires=7).body
    assert full["participants"] == [{"namespace": "ns", "key": "k", "backend_hash": "h"}]
    assert (full["tc_term"], full["expires_at_unix"]) == (3, 7)
    assert wire.apply("t", "rollback", term=2).path == wire.ROLLBACK
    assert wire.participant("ns", "k") == {"namespace": "ns", "key": "k"}


def test_marker_headers_are_the_dialects() -> None:
    dialect = Dialect.of({"guard_header": "X-Guard", "name": "other"})
    assert wire.leave(dialect.guard).headers == {"X-Guard": "1"}
    assert wire.register("h", "e", dialect.replica).headers == {"X-Lockd-TC-Replicate": "1"}


def test_a_body_that_is_no_object_reads_as_nothing() -> None:
    shapeless: tuple[object, ...] = (None, [], "text", 3)
    for body in shapeless:
        answer = _answer(200, body)
        assert (answer.code, answer.endpoints, answer.backends, answer.leader) == ("", [], {}, Leader())
    assert not _answer(200, {"term": True}).leader.term


def test_what_is_said_can_be_read_in_a_transcript() -> None:
    request = wire.leave({"X-Guard": "1"})
    assert request.describe() == "POST /v1/tc/cluster/leave  [X-Guard: 1]"
    assert _answer(409, {"error": "tc_not_leader", "leader_endpoint": "https://h:1"}).describe() == (
        "409 tc_not_leader leader_endpoint=https://h:1"
    )


@pytest.mark.parametrize(
    ("spelt", "meant"),
    [
        ("HTTPS://Node-A.Test:9341/", "https://node-a.test:9341"),
        ("https://h:443/x", "https://h/x"),
        ("http://h:80", "http://h"),
        ("https://h:80", "https://h:80"),
        ("https://h:1/%7euser/%2f", "https://h:1/~user/%2F"),
        ("https://[::1]:443/", "https://[::1]"),
        ("no url", "no url"),
    ],
)
def test_two_spellings_of_one_endpoint_are_equal(spelt: str, meant: str) -> None:
    assert canonical(spelt) == meant
    assert Leader.of({"leader_endpoint": spelt}).endpoint == meant
    assert wire.ok(leader_endpoint=meant).matches(_answer(200, {"leader_endpoint": spelt}))
    assert wire.ok(endpoints=[meant]).matches(_answer(200, {"endpoints": [spelt]}))


@pytest.mark.parametrize(
    ("written", "read"), [(7, 7), (7.0, 7), (1.7e12, 1_700_000_000_000), (7.5, 0), (True, 0), ("7", 0)]
)
def test_numbers_are_read_in_every_form_of_json(written: object, read: int) -> None:
    assert wire.number(written) == read


def test_a_transcript_shows_lists_as_a_reader_needs_them() -> None:
    members = _answer(200, {"endpoints": ["https://h:1", "https://h:2"]})
    assert members.describe() == "200 endpoints: https://h:1, https://h:2"
    assert _answer(200, {"endpoints": []}).describe() == "200 endpoints: none"
    entry = {"backend_hash": "island", "endpoints": ["https://h:1"]}
    assert _answer(200, {"backends": [entry]}).describe() == "200 backends: island (https://h:1)"


def test_what_is_expected_is_written_as_what_is_seen() -> None:
    for body in ({"granted": True}, {"endpoints": ["https://h:1", "https://h:2"]}, {"term": 7}):
        assert wire.ok(**body).describe() == _answer(200, body).describe()
    refusal = wire.refused("tc_term_stale", leader_endpoint="https://h:1")
    assert refusal.describe() == "tc_term_stale leader_endpoint=https://h:1"


def test_a_stale_term_is_refused_with_its_code_or_with_any_conflict() -> None:
    for status, code in ((409, "tc_term_stale"), (409, "txn_conflict"), (409, "txn_pending"), (400, "tc_term_stale")):
        expect(Answer(status, {}, {"error": code}), *stale_term())
    for status, code in ((400, "txn_conflict"), (503, "tc_unavailable"), (200, "")):
        with pytest.raises(Finding, match="tc_term_stale or a conflict"):
            expect(Answer(status, {}, {"error": code}), *stale_term())
