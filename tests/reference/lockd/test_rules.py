"""Rules that need neither network nor time."""

from types import SimpleNamespace
from typing import Any

import pytest

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.endpoints import normal_endpoint
from holdfast.reference.lockd.identity import Caller, Identity, node_id_of
from holdfast.reference.lockd.ids import is_xid, uuid7
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.members import Members
from holdfast.reference.lockd.registry import Registry
from holdfast.reference.lockd.rmloop import RmLoop
from holdfast.reference.lockd.rounds import Leading
from holdfast.reference.lockd.seen import Seen, read_seen
from holdfast.reference.lockd.settings import Settings, settings_from
from holdfast.reference.lockd.slot import Slot
from holdfast.reference.lockd.store import Island, MemoryBackend
from holdfast.reference.lockd.txns import Request, Txns, read_request
from holdfast.reference.lockd.wire import Refusal
from holdfast.reference.shared.settings import BadSetting
from tests.reference.lockd.test_slot import FakeClock

ME, B, C = "https://127.0.0.1:1", "https://127.0.0.1:2", "https://127.0.0.1:3"


@pytest.fixture
def node() -> Any:
    """What a rule needs of a node: settings, a clock and a store; everything else is absent."""
    clock = FakeClock()
    settings = Settings(given_self=ME, join=(ME, B), leader_ttl=15.0)
    leave = SimpleNamespace(paused=False, leaving=False)
    made: Any = SimpleNamespace(clock=clock, settings=settings, leave=leave, leader_id="me", slot=Slot(clock))
    made.island = Island(MemoryBackend(), "")
    made.members = Members(made)
    return made


@pytest.mark.parametrize(("n", "quorum"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
async def test_quorum_is_more_than_half(node: Any, n: int, quorum: int) -> None:
    assert Election(node).quorum(n) == quorum


async def test_the_term_of_a_candidate_is_above_all(node: Any) -> None:
    election = Election(node)
    assert election.next_term(0, []) == 1
    assert election.next_term(3, [7, 1000]) == 1001
    assert election.next_term(1001, [7]) == 1002


async def test_periods_are_thirds(node: Any) -> None:
    assert Election(node).renew_every() == 5
    assert Members(node).ttl() == 45
    assert Loop(node).interval() == 15


async def test_the_membership_alone_is_the_peer_set(node: Any) -> None:
    election = Election(node)
    assert election.peer_set((ME, C), (ME, B)) == (ME, C)
    assert election.peer_set((), (B,)) == (ME, B)
    assert election.peer_set((B, C), (ME, B)) is None
    node.leave.paused = True
    assert election.peer_set((), (B,)) is None


async def test_an_own_lease_is_over_when_its_time_is(node: Any) -> None:
    election = Election(node)
    election.peers = (ME,)
    node.slot.acquire("me", ME, 4, 20.0)
    election.leading = Leading(4, node.clock.now + 15)
    assert election.current_leader() == Seen("me", ME, 4)
    node.clock.now += 15
    assert election.current_leader() is None
    assert not election.holds()


async def test_an_own_lease_is_over_when_a_caller_released_it(node: Any) -> None:
    election = Election(node)
    election.peers = (ME,)
    node.slot.acquire("me", ME, 4, 15.0)
    election.leading = Leading(4, node.clock.now + 15)
    node.slot.release("me", 4)
    assert election.current_leader() is None


async def test_a_vote_names_no_leader(node: Any) -> None:
    election = Election(node)
    election.peers = (ME,)
    node.slot.acquire("x", B, 9, 3.0)
    assert election.view() == {"term": 9, "expires_at": node.clock.wall_ms() + 3000}
    assert election.current_leader() is None
    node.slot.renew("x", 9, 3.0)
    assert election.view()["leader_endpoint"] == B
    assert election.current_leader() == Seen("x", B, 9, node.clock.wall_ms() + 3000)


async def test_of_several_reports_the_highest_valid_term_counts(node: Any) -> None:
    ahead, past = node.clock.wall_ms() + 1000, node.clock.wall_ms()
    reports = [Seen("x", B, 5, ahead), Seen("y", C, 7, ahead), Seen("z", C, 9, past), Seen("", "", 11, ahead)]
    assert Election(node).observed(reports) == Seen("y", C, 7, ahead)
    assert Election(node).observed([]) is None


@pytest.mark.parametrize("body", [{"term": "7"}, {"term": -1}, {"leader_id": 5}, {"expires_at": 1.5}])
def test_a_report_of_the_wrong_form_says_nothing(body: dict[str, Any]) -> None:
    assert read_seen(body) == Seen()


async def test_seeds_are_announce_targets_only_while_no_other_member_is_known(node: Any) -> None:
    loop = Loop(node)
    assert loop.announce_targets((ME,), (ME, B)) == [B]
    assert loop.announce_targets(None, (ME, B)) == [B]
    assert loop.announce_targets((ME, C), (ME, B)) == [C]


async def test_seeds_are_registered_at_only_without_members(node: Any) -> None:
    loop = RmLoop(node)
    assert loop.register_targets((ME, C), (B,)) == (ME, C)
    assert loop.register_targets((), (B,)) == (B,)
    assert loop.register_targets(None, (B,)) == (B,)


async def test_a_lease_lasts_three_leader_ttls_from_the_last_announce(node: Any) -> None:
    members = Members(node)
    first = await members.announce("x", B)
    assert first.expires_at_unix == node.clock.wall_ms() + 45_000
    node.clock.now += 5
    second = await members.announce("x", C)
    assert second.expires_at_unix == first.expires_at_unix + 5000
    assert (await members.active()).endpoints == (C,)
    node.clock.now += 44.999
    assert (await members.active()).endpoints == (C,)
    node.clock.now += 0.001
    assert (await members.active()).endpoints == ()


async def test_a_shared_endpoint_is_listed_once_until_the_last_leaves(node: Any) -> None:
    members = Members(node)
    for identity, endpoint in (("x", C), ("y", C), ("z", B)):
        await members.announce(identity, endpoint)
    assert (await members.active()).endpoints == (B, C)
    await members.remove("x")
    assert (await members.active()).endpoints == (B, C)
    await members.remove("y")
    assert (await members.active()).endpoints == (B,)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        (" https://h:1/ ", "https://h:1"),
        ("http://h", "http://h"),
        ("https://h:1//a/../b/", "https://h:1/b"),
        ("ftp://h:1", None),
        ("h:1", None),
        ("https://u@h:1", None),
        ("https://h:1?x=1", None),
        ("https://h:1?", None),
        ("https://h:1#f", None),
        ("https://", None),
        ("https://h:99999", None),
        ("https://h h", None),
        ("https://[::1", None),
    ],
)
def test_endpoints_have_one_form(text: str, normal: str | None) -> None:
    assert normal_endpoint(text) == normal


@pytest.mark.parametrize(
    ("uris", "found"),
    [
        (("spiffe://lockd/server/n1",), "n1"),
        (("lockd://ns/ALL?perm=rw", "spiffe://LOCKD/server/n1/"), "n1"),
        (("spiffe://lockd/tc/n1",), ""),
        (("spiffe://lockd/sdk/n1",), ""),
        (("spiffe://other/server/n1",), ""),
        (("spiffe://lockd/server/",), ""),
        ((), ""),
    ],
)
def test_only_a_server_uri_is_an_identity(uris: tuple[str, ...], found: str) -> None:
    assert node_id_of(uris) == found


def test_claims_say_where_decisions_may_write() -> None:
    identity = Identity(Settings(), None, ())
    some, every = Caller(uris=("lockd://ns/default?perm=rw",)), Caller(uris=("lockd://ns/ALL?perm=rw",))
    identity.authorize_namespaces(some, {"default"})
    identity.authorize_namespaces(every, {"default", "x"})
    identity.authorize_namespaces(every, set())
    reader = Caller(uris=("lockd://ns/default?perm=r",))
    for caller, wanted in ((some, {"x"}), (some, set()), (reader, {"default"}), (None, {"default"})):
        with pytest.raises(Refusal, match="namespace_forbidden"):
            identity.authorize_namespaces(caller, wanted)


async def test_registering_again_changes_nothing(node: Any) -> None:
    registry = Registry(node)
    assert await registry.apply("register", "h", B)
    before = await registry.listing()
    node.clock.now += 1
    assert not await registry.apply("register", "h", B)
    assert await registry.listing() == before
    assert not await registry.apply("unregister", "h", C)
    assert await registry.apply("unregister", "h", B)
    assert await registry.listing() == {"backends": None}


async def test_endpoints_are_grouped_by_backend(node: Any) -> None:
    registry = Registry(node)
    for backend, endpoint in (("h2", C), ("h1", C), ("h1", B)):
        await registry.apply("register", backend, endpoint)
    found = (await registry.listing())["backends"]
    assert [(each["backend_hash"], each["endpoints"]) for each in found] == [("h1", [B, C]), ("h2", [C])]


def decided(state: str, term: int) -> dict[str, Any]:
    return {"txn_id": "t", "state": state, "tc_term": term}


@pytest.mark.parametrize(
    ("known", "state", "term", "code"),
    [
        (None, "commit", 3, None),
        (decided("commit", 3), "commit", 3, None),
        (decided("pending", 3), "rollback", 3, None),
        (decided("commit", 3), "rollback", 4, "txn_conflict"),
        (decided("commit", 4), "commit", 3, "tc_term_stale"),
        (decided("commit", 4), "commit", 0, "tc_term_required"),
    ],
)
def test_a_decision_is_final(node: Any, known: Any, state: str, term: int, code: str | None) -> None:
    request = Request("t", state, tc_term=term)
    if code is None:
        assert Txns(node).merge_decision(known, request)["state"] == state
    else:
        with pytest.raises(Refusal, match=code):
            Txns(node).merge_decision(known, request)


def test_a_decision_does_not_become_pending_again(node: Any) -> None:
    assert Txns(node).merge_decision(decided("commit", 3), Request("t", "pending", tc_term=4))["state"] == "commit"


def test_participants_are_kept_as_they_were_given() -> None:
    given = [{"namespace": "n", "key": " k "}, {"key": "k", "backend_hash": "h"}]
    request = read_request({"txn_id": "9m4e2mr0ui3e8a215n4g", "state": "commit", "participants": given})
    assert request.fields()["participants"] == given


def test_ids_have_their_form() -> None:
    assert is_xid("9m4e2mr0ui3e8a215n4g")
    assert not any(
        is_xid(each) for each in ("", "9m4e2mr0ui3e8a215n41", "9M4E2MR0UI3E8A215N4G", "9m4e2mr0ui3e8a215n4gg")
    )
    first, second = uuid7(), uuid7()
    assert first != second
    assert (first[14], first[19] in "89ab") == ("7", True)


def test_flags_win_over_the_environment() -> None:
    found = settings_from({"LOCKD_SELF": B, "LOCKD_JOIN": f"{B}/, {C}"}, ["--self", ME, "--disable-mtls"])
    assert (found.self_endpoint, found.join, found.mtls) == (ME, (B, C), False)


@pytest.mark.parametrize("argv", [["--leader-ttl", "3"], ["word"], ["--self", "h:1"], ["--store", "redis://"]])
def test_a_bad_argument_is_named(argv: list[str]) -> None:
    with pytest.raises(BadSetting):
        settings_from({}, argv)
