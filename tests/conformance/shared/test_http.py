"""Requests and answers: what they say in a transcript, and that every call has an answer."""

import time
from pathlib import Path

import aiohttp
import pytest

from holdfast.check import raw_http
from holdfast.check.finding import Finding, expect
from holdfast.conformance.shared.wire import Answer, Request, moment, not_status, parse_body, status
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from tests.conformance.shared.driven import greeters


def test_a_request_shows_its_query_its_headers_and_its_fields() -> None:
    request = Request("POST", "/x", {"a": 1}, {"X-Guard": "1"}, {"q": "2"})
    assert request.describe() == "POST /x?q=2  [X-Guard: 1] a=1"
    assert Request("GET", "/x").describe() == "GET /x"
    assert Request("POST", "/x", [1]).describe() == "POST /x"


def test_an_answer_is_late_only_if_there_was_none() -> None:
    silent, refusal = Answer(0, {}, None, "after 5.0 s"), Answer(404, {}, None, "no such thing", 1.0, 2.0)
    assert (silent.late, silent.answered, silent.describe()) == (True, False, "no answer (after 5.0 s)")
    assert (refusal.late, refusal.fields, repr(refusal)) == (False, {}, "<404 no such thing>")
    assert (moment(refusal).lo, moment(refusal).hi) == (1.0, 2.0)


def test_a_status_is_legal_or_not() -> None:
    seen = Answer(404, {}, None)
    expect(seen, status(200, 404))
    expect(seen, not_status(200))
    for legal, words in ((status(200, 201), "status 200 or 201"), (not_status(404), "an answer other than 404")):
        with pytest.raises(Finding, match=words):
            expect(seen, legal)
    assert not not_status(200).matches(Answer(0, {}, None)), "silence is no status"


def test_a_body_is_json_or_text() -> None:
    assert parse_body(b'{"a": 1}') == ({"a": 1}, '{"a": 1}')
    assert parse_body(b"\xff{") == (None, "\ufffd{")


async def test_every_call_has_an_answer_and_tells_the_listeners(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        heard: list[tuple[str, int]] = []
        driver.listeners.append(lambda request, answer: heard.append((request.path, answer.status)))
        fine = await driver.ask(Request("POST", "/x", {"who": "me"}))
        assert (fine.status, fine.fields["who"]) == (200, "me")
        assert 0 < fine.sent < fine.received
        assert fine.wall > 1e9
        slow = await driver.ask(Request("GET", "/slow"), within=0.2)
        assert (slow.status, slow.text) == (0, "after 0.2 s")
        cut = await driver.ask(Request("GET", "/ends"))
        assert (cut.status, cut.text) == (0, "the connection was closed before a whole answer")
        assert heard == [("/x", 200), ("/slow", 0), ("/ends", 0)]
        assert driver.lines()[:2] == ["POST /x  who=me", fine.describe()]
        assert driver.context.unanswered == 1


async def test_no_call_goes_over_a_connection_that_ended_while_our_loop_stalled(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with greeters(guardian, ports, tmp_path) as driver, aiohttp.ClientSession() as http:
        for who in ("me", "myself", "I"):
            request = Request("POST", "/brief", {"who": who})
            answer = await driver.exchange(lambda: http, driver.url_of("a", "http"), request, within=5.0)
            assert answer.fields.get("who") == who, answer.describe()
            time.sleep(0.2)  # noqa: ASYNC251  # the server ends the connection, and the loop hears nothing of it


async def test_raw_bytes_have_an_answer_too(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        url = driver.url_of("a", "http")
        fine = await driver.raw_exchange(url, [raw_http.request("GET", "/x", {})], within=5.0)
        assert (fine.status, fine.fields["greeting"]) == (200, "hello")
        broken = await driver.raw_exchange(url, [b"GARBAGE\r\n\r\n"], within=5.0)
        assert broken.status == 400
        off = await driver.raw_exchange(url, [b"GET / HT"], within=5.0, break_off=True)
        assert off.describe() == "no answer (broken off)"


async def test_metrics_are_prometheus_text_or_a_finding(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with greeters(guardian, ports, tmp_path) as driver:
        assert (await driver.scrape(driver.ask(Request("GET", "/metrics")))).total("greetings") == 2.0
        with pytest.raises(Finding, match="Prometheus"):
            await driver.scrape(driver.ask(Request("GET", "/ends")))
