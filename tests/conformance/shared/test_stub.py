"""A stub that a real node or client calls: the record, the script, the port, the excuse."""

import asyncio
import socket
import time
from pathlib import Path

import aiohttp
import pytest

from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.x509 import Authority, Leaf, load_chain
from holdfast.conformance.shared.http_stub import HttpCall, HttpStub
from holdfast.conformance.shared.stub import Reply
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from tests.conformance.shared.driven import Greeters, greeters


class Peer(HttpStub[HttpCall]):
    def friendly(self, call: HttpCall) -> Reply:
        return Reply(200, {"echo": call.path})


async def post(url: str, **body: object) -> tuple[int, object]:
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as reply:
        return reply.status, await reply.json()


async def opened(driver: Greeters, deadline: float = 1.0) -> Peer:
    peer = Peer(driver, "peer", deadline)
    await peer.open()
    driver.context.stack.push_async_callback(peer.close)
    return peer


async def test_calls_are_recorded_and_answered_by_script(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = await opened(driver)
        assert await post(f"{peer.endpoint}/a", n=1) == (200, {"echo": "/a"})
        peer.on("/a", lambda call: Reply(409, {"n": call.body["n"]}))
        since = driver.T.now()
        assert await post(f"{peer.endpoint}/a", n=2) == (409, {"n": 2})
        peer.off("/a", "/never")
        assert (await post(f"{peer.endpoint}/a", n=3))[0] == 200
        assert [call.body["n"] for call in peer.got("/a")] == [1, 2, 3]
        assert [call.body["n"] for call in peer.got("/a", since=since, where=lambda call: call.body["n"] != 2)] == [3]
        assert driver.lines()[0] == "peer: POST /a n=1  ← 200 echo=/a"
        assert all(call.answered and call.answered >= call.at for call in peer.calls)
        peer.on("/a", Reply(hangs_up=True))
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await post(f"{peer.endpoint}/a", n=4)
        assert peer.calls[-1].answered is None


async def test_a_closed_stub_is_gone_and_comes_back_at_its_port(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = await opened(driver)
        before = peer.endpoint
        closed = await peer.close()
        assert closed.hi >= closed.lo
        with pytest.raises(aiohttp.ClientConnectorError):
            await post(f"{before}/a")
        await peer.open()
        assert peer.endpoint == before
        assert (await post(f"{before}/a"))[0] == 200


async def test_a_call_is_waited_for_and_judged(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = await opened(driver)
        calling = driver.beside(_later(f"{peer.endpoint}/a"))
        call = await peer.receives("/a", "self_listed_max", count=2)
        assert call is peer.calls[1]
        await calling
        with pytest.raises(Finding, match="/b at peer"):
            await peer.receives("/b", "handover_max", times=0.5)


async def _later(url: str) -> None:
    for _ in range(2):
        await asyncio.sleep(0.05)
        await post(url)


async def test_a_stub_that_was_late_itself_excuses_a_finding(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = await opened(driver, deadline=0.05)
        with pytest.raises(Finding), peer.excused():
            raise Finding(["x"], "y")
        peer.on("/held", Reply(hold=0.2))
        await post(f"{peer.endpoint}/held")
        assert peer.worst_lag < 0.05, "what the script holds back is no lag"
        assert not driver.context.late_stub

        def slow(_call: HttpCall) -> Reply:
            time.sleep(0.15)
            return Reply()

        peer.on("/slow", slow)
        await post(f"{peer.endpoint}/slow")
        with pytest.raises(Inconclusive, match="was itself"), peer.excused():
            raise Finding(["x"], "y")
        assert "was itself" in driver.context.late_stub, "at twice the deadline nothing of the check counts"


async def test_behind_tls_the_record_has_the_callers_certificate(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    import ssl

    authority = Authority.new("tests")
    server, client = authority.issue(Leaf("peer", hosts=("127.0.0.1",))), authority.issue(Leaf("caller"))
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_verify_locations(cadata=authority.pem)
    served.verify_mode = ssl.CERT_REQUIRED
    load_chain(served, server.pem + server.key_pem)
    calls = ssl.create_default_context(cadata=authority.pem)
    load_chain(calls, client.pem + client.key_pem)
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = Peer(driver, "peer", 1.0, served)
        await peer.open()
        driver.context.stack.push_async_callback(peer.close)
        async with aiohttp.ClientSession() as http, http.get(f"{peer.endpoint}/a", ssl=calls) as reply:
            assert reply.status == 200
        assert peer.calls[0].certificate == client.certificate


async def test_a_closed_stub_keeps_its_port_and_refuses_calls(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        peer = await opened(driver, deadline=1.0)
        await peer.close()
        port = int(peer.endpoint.rpartition(":")[2])
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        with socket.socket() as caller, pytest.raises(ConnectionRefusedError):
            caller.connect(("127.0.0.1", port))
        await peer.open()
        await post(f"{peer.endpoint}/again")
        assert [call.path for call in peer.calls] == ["/again"]
