"""Answers of the API process: refusals without a trace, phase 1, and the form that the contract publishes."""

import asyncio
import signal
from typing import Any

from holdfast.spec.contract import Contract
from tests.kernel.test_contract import Answered, Asked
from tests.reference.intents.world import RO, TTL, W, World, channel, until, world
from tests.reference.world import Answer

CONTRACT = Contract("intents")
BAD = [b"{", b"", b"null", b"[]", b'"x"', b"{}", b'{"serviceRef":"a|b"}', b'{"serviceRef":"a","bogus":1}']
UNKNOWN = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


def documented(answer: Answer, path: str = "/api/v3/intents", method: str = "POST") -> None:
    """Fails unless the contract has this answer."""
    status = int(answer.get("http") or answer["status"])
    body = {name: value for name, value in answer.items() if name not in ("http", "headers")}
    assert CONTRACT.problem(Asked(method, path), Answered(status, body, answer["headers"])) is None


async def refused(w: World, body: Any, headers: dict[str, str], status: int) -> None:
    answer = await w.post(body, headers)
    assert (answer["http"], answer["status"]) == (status, status)
    assert answer["requestId"] == answer["headers"]["X-Request-ID"]
    documented(answer)


async def test_refused_requests_leave_no_trace() -> None:
    async with world(XG2G_TRUSTED_PROXIES="127.0.0.1", XG2G_V3_API_LEASES="true") as w:
        session = await w.ready(channel())
        await w.stop(session)
        await w.shows(session, "STOPPED")
        before = await w.snapshot()
        valid = {"serviceRef": channel()}
        for body in (valid, {"recordingId": "r"}, {"type": "stream.stop", "sessionId": session}, *BAD[:3]):
            await refused(w, body, {}, 401)
            await refused(w, body, {"Authorization": "Bearer wri"}, 401)
            await refused(w, body, RO, 403)
            await refused(w, body, {"Authorization": "Bearer nearly"}, 403)
            await refused(w, body, {**W, "X-Forwarded-For": "8.8.8.8"}, 403)
        for bad in BAD:
            await refused(w, bad, W, 400)
        await refused(w, {"serviceRef": "a", "params": {"x": "y" * 1_048_576}}, W, 413)
        assert await w.snapshot() == before


async def test_phase_1_takes_the_channel_before_it_accepts() -> None:
    async with world(XG2G_V3_API_LEASES="") as w:
        ref = channel()
        answers = await asyncio.gather(w.start(ref), w.start(ref))
        assert sorted(answer["http"] for answer in answers) == [202, 409]
        (session,) = [answer["sessionId"] for answer in answers if answer["http"] == 202]
        await w.shows(session, "READY")
        busy = await w.start(ref, "low")
        assert (busy["http"], busy["code"], busy["headers"]["Retry-After"]) == (409, "LEASE_BUSY", "1")
        documented(busy)
        await w.stop(session)
        await w.shows(session, "STOPPED")
        await w.ready(ref, "low")


async def test_phase_1_gives_a_needless_lease_back() -> None:
    async with world(XG2G_V3_API_LEASES="true") as w:
        ref = channel()
        w.nodes[1].send_signal(signal.SIGSTOP)
        session = (await w.start(ref))["sessionId"]
        assert await w.leases() == {f"lease:service:{ref}": session}
        await asyncio.sleep(TTL * 1.2)
        again = await w.start(ref)
        assert (again["http"], again["sessionId"]) == (202, session)
        assert await w.leases() == {}
        w.nodes[1].send_signal(signal.SIGCONT)
        await w.shows(session, "READY")


async def test_answers_have_the_published_form() -> None:
    async with world() as w:
        made = await w.start(channel(), correlationId="c-1")
        documented(made)
        path = f"/api/v3/sessions/{made['sessionId']}"
        await w.shows(made["sessionId"], "READY")
        documented(await w.call("GET", path, RO), path, "GET")
        documented(await w.start("a", correlationId="c-2"))
        stopped = await w.stop(made["sessionId"])
        documented(stopped)
        await w.shows(made["sessionId"], "STOPPED")
        gone = await w.call("GET", path, RO)
        assert (gone["status"], gone["reason"]) == (410, "R_CLIENT_STOP")
        for each, headers in (
            (path, RO),
            (f"/api/v3/sessions/{UNKNOWN}", RO),
            ("/api/v3/sessions/a.b", RO),
            ("/api/v3/sessions/x", {}),
            ("/api/v3/sessions", RO),
            ("/api/v3/sessions?limit=x", {"Authorization": "Bearer administers"}),
        ):
            answer = await w.call("GET", each, headers)
            documented(answer, each.partition("?")[0], "GET")
        listed = await w.call("GET", "/api/v3/sessions?limit=1", {"Authorization": "Bearer administers"})
        assert (listed["status"], listed["pagination"]["total"], len(listed["sessions"])) == (200, 2, 1)
        assert (await w.call("GET", "/api/v3/intents", W))["code"] == "METHOD_NOT_ALLOWED"


async def test_an_api_without_its_store_answers_503() -> None:
    async with world() as w:
        w.valkey.kill()
        w.valkey.wait()
        answer = await w.start(channel())
        assert (answer["http"], answer["headers"]["Retry-After"]) == (503, "1")
        documented(answer)
        w.valkey = w.start_valkey()

        async def taken() -> bool:
            return bool((await w.start("again"))["http"] == 202)

        await until(taken)
