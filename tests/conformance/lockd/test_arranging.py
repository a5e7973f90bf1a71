"""Steps that only prepare a check, callers that are cut off, and two leaders in one term."""

import asyncio
import ssl
import time
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from holdfast.check.finding import ArrangementFailed, Unsafe
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.spy import BROKEN, spies
from holdfast.conformance.lockd.views import quorums_meet, two_in_one_term
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.conformance.shared.stub import Reply
from tests.conformance.lockd.driver import Node, lines, with_driver


def _serve_at(lockd: Lockd, node: str, url: str) -> None:
    cast("Node", lockd.deployment.nodes[node]).urls["https"] = url


def test_a_refused_step_is_charged_to_the_row_that_owns_it(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (node,) = await spies(lockd, 1)
        _serve_at(lockd, "a", node.endpoint)
        await lockd.arrange("TC-MEMBER-01", wire.announce("https://h:1"), lockd.own("a"), node="a")
        node.on(wire.ANNOUNCE, BROKEN)
        with pytest.raises(ArrangementFailed, match=r"500 internal_error.*judged by TC-MEMBER-01"):
            await lockd.arrange("TC-MEMBER-01", wire.announce("https://h:1"), lockd.own("a"), node="a")

    with_driver(tmp_path, check)


def test_a_step_waits_out_a_503_that_asks_for_patience(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (node,) = await spies(lockd, 1)
        _serve_at(lockd, "a", node.endpoint)
        busy = Reply(503, {"error": "node_passive", "retry_after_seconds": 1})
        node.on(wire.ANNOUNCE, lambda _call: busy if len(node.got(wire.ANNOUNCE)) < 3 else Reply(200))
        await lockd.arrange("TC-MEMBER-01", wire.announce("https://h:1"), lockd.own("a"), node="a")
        assert len(node.got(wire.ANNOUNCE)) == 3

    with_driver(tmp_path, check)


def test_a_silence_is_judged_only_past_what_the_target_states(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        calls = {"leave": wire.leave(), "registry": wire.unregister("h", "https://h:1"), "": wire.leader()}
        before = {name: lockd._answer_timeout(request) for name, request in calls.items()}
        stated = {"leave": 1000.0, "registry": 2000.0}
        lockd.context.target = replace(lockd.context.target, windows=stated)
        for name, request in calls.items():
            assert lockd._answer_timeout(request) >= stated.get(name, 0.0)
        assert lockd._answer_timeout(calls[""]) == before[""], "a question has no window"
        lockd.context.target = replace(lockd.context.target, windows={"leave": 0.1})
        assert lockd._answer_timeout(calls["leave"]) == before["leave"], "no server has to be faster than the suite"

    with_driver(tmp_path, check)


def test_marks_are_found_whatever_the_case_of_their_names_and_shown(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        (spy,) = await spies(lockd, 1)
        request = wire.leave({"x-lockd-tc-leave-FANOUT": "1"})
        await lockd.call(request, lockd.own("a"), url=spy.endpoint)
        (call,) = spy.got(wire.LEAVE)
        assert call.marked(lockd.dialect.guard_header)
        assert not call.marked(lockd.dialect.replica_header)
        told = next(line for line in lines(lockd) if line.startswith("spy1: POST"))
        assert "[X-Lockd-TC-Leave-Fanout: 1] from spiffe://lockd/server/id-a" in told
        assert "← 200 endpoints=" in told

    with_driver(tmp_path, check)


@pytest.mark.parametrize("moment", ["at once", "in the body"])
def test_a_caller_that_is_cut_off_was_refused_its_handshake(tmp_path: Path, moment: str) -> None:
    """As servers do that see too late, with TLS 1.3, that there was no certificate."""

    async def cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if moment == "in the body":
            await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()

    async def check(lockd: Lockd) -> None:
        served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        (spy,) = await spies(lockd, 1)
        pem = tmp_path / "server.pem"
        pem.write_text(spy.identity.chain_pem + spy.identity.key_pem)
        served.load_cert_chain(pem)
        server = await asyncio.start_server(cut, "127.0.0.1", 0, ssl=served)
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        body = wire.register("h" * 1_000_000, "https://h:1")
        refused = await lockd.call(body, url=url, anonymous=True)
        assert wire.no_handshake().matches(refused), refused.describe()
        assert "Errno None" not in refused.describe()
        welcome = await lockd.call(body, url=url)
        assert not welcome.handshake_failed
        server.close()
        assert not (await lockd.call(body, url=lockd.closed_port(), anonymous=True)).handshake_failed

    with_driver(tmp_path, check)


def _shows(leader: Leader) -> Answer:
    now = time.monotonic()
    return Answer(200, {}, leader.fields(), sent=now, received=now, wall=time.time())


def _listed(lockd: Lockd, node: str) -> None:
    """Notes that the node has shown a list of both long ago."""
    body = {"endpoints": [lockd.endpoint("a"), lockd.endpoint("b")]}
    ago = time.monotonic() - 10 * lockd.T.leader_ttl - 10 * lockd.T.clock_slack
    lockd.views.note(node, wire.members(), Answer(200, {}, body, sent=ago, received=ago))


def test_two_leaders_in_one_term_are_unsafe_once_nodes_have_settled(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        pair = await spies(lockd, 2)
        for node, spy in zip(("a", "b"), pair, strict=True):
            _serve_at(lockd, node, spy.endpoint)
            spy.on(wire.MEMBERS, Reply(200, {"endpoints": [each.endpoint for each in pair]}))
        until = int(time.time() * 1000) + 60_000
        shown = {node: Leader(node, lockd.endpoint(node), 4, until) for node in ("a", "b")}
        split = two_in_one_term(shown)
        assert split is not None

        await lockd.views.judge(*split)
        for node in ("a", "b"):
            lockd.views.forget(node)
            _listed(lockd, node)
            lockd.views.note(node, wire.leader(), _shows(shown[node]))
        assert lockd.views.rivals() == split
        with pytest.raises(Unsafe, match="one leader in term 4"):
            await lockd.views.judge(*split)
        cast("Node", lockd.deployment.nodes["b"]).pid = 2
        await lockd.views.judge(*split)

    with_driver(tmp_path, check, a="https://127.0.0.1:1", b="https://127.0.0.1:2")


def test_majorities_of_nearly_equal_lists_meet() -> None:
    assert quorums_meet("abc", "abc")
    assert quorums_meet("abc", "ab")
    assert not quorums_meet("abc", "c")
    assert not quorums_meet("abcd", "ef")


def test_different_terms_are_no_split() -> None:
    assert two_in_one_term({"a": Leader("a", "x", 1), "b": Leader("b", "y", 2), "c": None}) is None
    assert two_in_one_term({"a": Leader("a", "x", 1), "b": Leader("a", "x", 1)}) is None
