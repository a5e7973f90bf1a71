import asyncio
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from holdfast.check.finding import Finding, Inconclusive, NotObservable, Unsafe
from holdfast.check.timeline import Moment
from holdfast.check.x509 import CLIENT_AUTH
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Authority
from holdfast.conformance.lockd.membership import judge_gaps, unless_calls_failed
from holdfast.conformance.lockd.spy import BROKEN, Spy, refuses, spies
from holdfast.conformance.lockd.wire import Leader
from holdfast.conformance.shared.stub import Reply
from holdfast.conformance.shared.wire import Request
from tests.conformance.lockd.driver import lines, with_driver

TTL = 60_000


async def _ask(lockd: Lockd, spy: Spy, request: Request, **how: object) -> wire.Answer:
    return await lockd.call(request, url=spy.endpoint, **how)  # type: ignore[arg-type]  # who, data or anonymous


def test_a_spy_records_who_called_and_answers_as_a_willing_peer(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        server = lockd.authority.server("node-x")
        granted = await _ask(lockd, spy, wire.acquire("c", "https://h:1", 7, TTL), who=server)
        assert wire.ok(granted=True, leader_id="c", term=7).matches(granted)
        assert (await _ask(lockd, spy, wire.renew("c", 7, TTL))).fields["renewed"] is True
        assert (await _ask(lockd, spy, wire.release("c", 7))).fields == {"released": True}
        assert (await _ask(lockd, spy, wire.leader())).fields == {}
        vote = spy.got(wire.ACQUIRE)[0]
        assert (vote.node_id, vote.body["term"]) == ("node-x", 7)
        assert CLIENT_AUTH in vote.usages
        assert spy.got(wire.RENEW)[0].node_id == ""
        assert spy.got_from("another", wire.ACQUIRE) == []

    with_driver(tmp_path, check)


def test_a_spy_keeps_the_registry_changes_that_it_accepted(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        await _ask(lockd, spy, wire.register("h", "e"))
        assert spy.kept == {("h", "e")}
        spy.on(wire.UNREGISTER, BROKEN)
        assert (await _ask(lockd, spy, wire.unregister("h", "e"))).status == 500
        assert spy.kept == {("h", "e")}
        spy.script.clear()
        await _ask(lockd, spy, wire.unregister("h", "e"))
        assert spy.kept == set()

    with_driver(tmp_path, check)


def test_a_spy_answers_by_script(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        spy.refuse_votes()
        assert wire.refused("tc_lease_active").matches(await _ask(lockd, spy, wire.acquire("c", "e", 1, TTL)))
        spy.grant_votes()
        assert (await _ask(lockd, spy, wire.acquire("c", "e", 1, TTL))).ok
        spy.report(lambda: Leader("n", "https://h:1", 4, int(time.time() * 1000) + TTL))
        assert (await _ask(lockd, spy, wire.leader())).has_leader
        spy.on(wire.DECIDE, refuses("txn_conflict"))
        assert wire.refused("txn_conflict").matches(await _ask(lockd, spy, wire.decide("t", "commit")))

    with_driver(tmp_path, check)


def test_a_spy_that_hangs_up_or_closes_gives_no_answer(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        spy.on(wire.LEADER, Reply(hangs_up=True))
        assert not (await _ask(lockd, spy, wire.leader())).answered
        assert len(spy.got(wire.LEADER)) >= 1
        spy.script.clear()
        endpoint = spy.endpoint
        await spy.close()
        assert (await _ask(lockd, spy, wire.leader())).late
        await spy.open()
        assert spy.endpoint == endpoint
        assert (await _ask(lockd, spy, wire.leader())).ok

    with_driver(tmp_path, check)


def test_a_spy_wants_a_certificate_of_its_ca(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        assert wire.no_handshake().matches(await _ask(lockd, spy, wire.leader(), anonymous=True))
        foreign = Authority.new("foreign").server("x")
        answer = await _ask(lockd, spy, wire.leader(), who=foreign)
        assert not answer.answered
        assert spy.calls == []

    with_driver(tmp_path, check)


def test_a_held_answer_is_no_lag_but_a_late_one_is(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        for _ in range(9):
            (spy,) = await spies(lockd, 1)
            spy.on(wire.LEADER, Reply(200, {"term": 1}, hold=2 * spy.deadline))
            await _ask(lockd, spy, wire.leader())
            if spy.worst_lag < spy.deadline:  # a machine with other work makes any spy late
                break
        assert spy.worst_lag < spy.deadline
        with pytest.raises(Finding), spy.excused():
            raise Finding(["a call"], "none")

        def slow(_call: object) -> Reply:
            time.sleep(2 * spy.deadline)
            return Reply()

        spy.on(wire.LEADER, slow)
        await _ask(lockd, spy, wire.leader())
        assert spy.worst_lag > spy.deadline
        assert any("late" in line for line in lines(lockd))
        with pytest.raises(Inconclusive), spy.excused():
            raise Finding(["a call"], "none")

    with_driver(tmp_path, check)


async def _opened(lockd: Lockd, spy: Spy, before: float, after: float) -> None:
    """Makes one call; waits `before` its handshake begins and `after` it has ended."""
    place = urlsplit(spy.endpoint)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    await asyncio.sleep(before)
    await writer.start_tls(lockd.authority.server("node-x").client_context)
    await asyncio.sleep(after)
    writer.write(f"GET {wire.LEADER} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    writer.close()


def test_a_slow_handshake_is_lag_and_an_idle_connection_is_not(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        for _ in range(9):
            idle, slow = await spies(lockd, 2)
            long = 1.5 * idle.deadline
            await lockd.parallel([partial(_opened, lockd, idle, 0, long), partial(_opened, lockd, slow, long, 0)])
            if not idle.was_late:  # see above
                break
        assert not idle.was_late
        assert slow.worst_lag >= long
        assert slow.calls[0].opening >= long
        now, names = Moment.now(), ("membership_interval", "tick_tolerance_percent")
        with pytest.raises(Inconclusive, match=r"was itself .* late: gaps of 5.00, 5.00 s"):
            judge_gaps(slow, [0.0, 5.0, 10.0], *names, now)
        with pytest.raises(Finding):
            judge_gaps(idle, [0.0, 5.0, 10.0], *names, now)
        with pytest.raises(Unsafe), slow.excused():
            raise Unsafe(["one leader"], "two")

    with_driver(tmp_path, check)


def test_calls_that_may_have_failed_prove_nothing(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        audit = lockd.context.audit
        audit.start()
        since = lockd.T.now()
        with pytest.raises(Finding), unless_calls_failed(lockd, since, spy):
            raise Finding(["a leave"], "none")
        await asyncio.sleep(0.1)
        time.sleep(1.2 * lockd.T.peer_call_timeout)  # noqa: ASYNC251 - the harness is stalled longer than a node waits
        await asyncio.sleep(0.1)
        with pytest.raises(Inconclusive, match="the machine delayed us"), unless_calls_failed(lockd, since, spy):
            raise Finding(["a leave"], "none")
        with pytest.raises(Unsafe), unless_calls_failed(lockd, since, spy):
            raise Unsafe(["one leader"], "two")
        with pytest.raises(Finding), unless_calls_failed(lockd, lockd.T.now(), spy):
            raise Finding(["a leave"], "none")
        audit.stop()

    with_driver(tmp_path, check)


def test_one_spys_lag_excuses_no_other(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        slow, quick = await spies(lockd, 2)
        assert slow.endpoint < quick.endpoint
        slow.worst_lag = 10 * slow.deadline
        with pytest.raises(Finding), quick.excused():
            raise Finding(["a call"], "none")

    with_driver(tmp_path, check)


def test_waiting_for_a_call_ends_with_it_or_with_a_finding(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        since = Moment.now()
        asking = asyncio.ensure_future(_ask(lockd, spy, wire.leader()))
        call = await spy.receives(wire.LEADER, "next_tick_max", since=since)
        assert call.method == "GET"
        await asking
        with pytest.raises(Finding):
            for _ in range(9):
                with suppress(Inconclusive):  # a machine with other work may make the spy itself late
                    await spy.receives(wire.RENEW, "handover_max")
                    break

    with_driver(tmp_path, check)


def test_gaps_are_judged_by_period_and_tolerance(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        lockd.T.timings._scaled["membership_interval"] = lockd.T.timings.of("leader_ttl").__class__(
            lockd.T.timings.of("membership_interval").timing, 15.0, 15.0, "test"
        )
        now, names = Moment.now(), ("membership_interval", "tick_tolerance_percent")
        judge_gaps(spy, [0.0, 15.0, 30.5, 44.0], *names, now)
        assert not lockd.context.warnings
        judge_gaps(spy, [0.0, 15.0, 34.0, 49.0], *names, now)
        assert len(lockd.context.warnings) == 1
        with pytest.raises(Finding):
            judge_gaps(spy, [0.0, 45.0, 90.0], *names, now)

    with_driver(tmp_path, check)


def test_missing_credentials_name_the_key(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        assert lockd.node_id("a") == "id-a"
        (tmp_path / "b.pem").unlink()
        with pytest.raises(NotObservable, match="server_bundle"):
            lockd.own("b")

    with_driver(tmp_path, check)


def test_a_cluster_that_is_not_ours_has_no_lone_node_unless_it_names_one(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        with pytest.raises(NotObservable, match="lone_node"):
            _ = lockd.lone

    with_driver(tmp_path, check, a="https://127.0.0.1:1", b="https://127.0.0.1:2")
