"""The API without a real server beside it: what the differential suite compares must hold where there is none."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from holdfast.chaos.relay.address import Address, AddressError, resolve, split
from holdfast.chaos.relay.api import Api
from holdfast.chaos.relay.http import HttpServer
from holdfast.chaos.relay.relay import Relay
from tests.chaos.differential.servers import Subject

PROXY = '{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}'


@contextlib.asynccontextmanager
async def api(*, metrics: bool = False, runtime: bool = False) -> AsyncIterator[Subject]:
    relay = Relay()
    server = HttpServer(Api(relay, metrics=metrics, runtime=runtime).answer)
    try:
        yield Subject("relay", await server.start("127.0.0.1", 0))
    finally:
        await server.close()
        await relay.close()


async def test_every_route_answers_with_its_status() -> None:
    async with api() as relay:
        toxic = '{"type":"latency","attributes":{"latency":1}}'
        for method, path, body, status in [
            ("GET", "/version", "", 200),
            ("GET", "/proxies", "", 200),
            ("POST", "/proxies", PROXY, 201),
            ("POST", "/proxies", PROXY, 409),
            ("POST", "/proxies", "", 400),
            ("GET", "/proxies/p", "", 200),
            ("GET", "/proxies/q", "", 404),
            ("POST", "/proxies/p", "{}", 200),
            ("PATCH", "/proxies/p", '{"listen":"nonsense"}', 500),
            ("GET", "/proxies/p/toxics", "", 200),
            ("POST", "/proxies/p/toxics", toxic, 200),
            ("POST", "/proxies/p/toxics", toxic, 409),
            ("POST", "/proxies/p/toxics", '{"type":"x"}', 400),
            ("GET", "/proxies/p/toxics/latency_downstream", "", 200),
            ("PATCH", "/proxies/p/toxics/latency_downstream", '{"attributes":{"jitter":1}}', 200),
            ("POST", "/proxies/p/toxics/latency_downstream", '{"attributes":{"jitter":"1"}}', 400),
            ("GET", "/proxies/p/counters", "", 200),
            ("POST", "/proxies/p/reset", "", 200),
            ("POST", "/proxies/p/rebind", "", 400),
            ("DELETE", "/proxies/p/toxics/latency_downstream", "", 204),
            ("POST", "/populate", f"[{PROXY}]", 201),
            ("POST", "/reset", "", 204),
            ("DELETE", "/proxies/p", "", 204),
            ("PUT", "/proxies", "", 405),
            ("GET", "/proxies/", "", 404),
            ("GET", "/metrics", "", 404),
        ]:
            assert (await relay.call(method, path, body)).status == status, (method, path, body)


async def test_bodies_and_types_are_to_the_byte() -> None:
    async with api() as relay:
        version = await relay.call("GET", "/version")
        assert version.body == '{"version": "2.12.0"}\n'
        assert version.headers["content-type"] == "application/json;charset=utf-8"
        missing = await relay.call("GET", "/proxies/p")
        assert missing.body == '{"error":"proxy not found","status":404}\n'
        assert missing.headers["content-type"] == "text/plain; charset=utf-8"
        assert missing.headers["x-content-type-options"] == "nosniff"
        await relay.call("POST", "/proxies", PROXY)
        made = await relay.call("POST", "/proxies/p/toxics", '{"type":"slicer","attributes":{"AVERAGE_SIZE":9}}')
        assert made.body == (
            '{"attributes":{"average_size":9,"size_variation":0,"delay":0},"name":"slicer_downstream","type":"slicer",'
            '"stream":"downstream","toxicity":1}'
        )
        assert made.headers["content-type"] == "application/json"


async def test_a_browser_is_refused_on_known_routes_only() -> None:
    async with api() as relay:
        refused = await relay.call("GET", "/proxies", user_agent="Mozilla/5.0")
        assert (refused.status, refused.body) == (403, "User agent not allowed\n")
        assert (await relay.call("GET", "/nowhere", user_agent="Mozilla/5.0")).status == 404
        assert (await relay.call("GET", "/proxies", user_agent="curl/8")).status == 200


async def test_toxics_in_the_create_body_are_taken_all_or_none() -> None:
    async with api() as relay:
        good = '{"type":"latency","attributes":{"latency":5}}'
        bad = PROXY.replace("}", f',"initial_toxics":[{good},{{"type":"x"}}]}}')
        refused = await relay.call("POST", "/proxies", bad)
        assert (refused.status, refused.body) == (400, '{"error":"invalid toxic type","status":400}\n')
        assert (await relay.call("GET", "/proxies")).body == "{}"
        made = await relay.call("POST", "/proxies", PROXY.replace("}", f',"initial_toxics":[{good}]}}'))
        assert made.status == 201
        assert '"name":"latency_downstream"' in made.body


async def test_what_is_ours_is_shown_only_where_it_was_asked_for() -> None:
    async with api() as relay:
        plain = await relay.call("POST", "/proxies", PROXY)
        assert "strict" not in plain.body
        strict = await relay.call("PATCH", "/proxies/p", '{"strict":true}')
        assert '"strict":true' in strict.body
        refused = await relay.call("POST", "/proxies", PROXY.replace("}", ',"protocol":"sctp"}').replace('"p"', '"q"'))
        assert refused.status == 400
        assert "protocol sctp: it is one of tcp, udp" in refused.body


async def test_a_refused_update_changes_nothing() -> None:
    async with api() as relay:
        await relay.call("POST", "/proxies", PROXY)
        made = await relay.call("POST", "/proxies/p/toxics", '{"type":"latency","attributes":{"latency":5}}')
        for body in ('{"attributes":{"latency":7,"jitter":"x"}}', '{"attributes":{"latency":7},"toxicity":"x"}'):
            assert (await relay.call("PATCH", "/proxies/p/toxics/latency_downstream", body)).status == 400
        assert (await relay.call("GET", "/proxies/p/toxics/latency_downstream")).body == made.body


@pytest.mark.parametrize("body", ['{"average_size":0}', '{"average_size":-4}', '{"average_size":4,"size_variation":5}'])
async def test_a_slicer_that_would_never_end_is_refused(body: str) -> None:
    async with api() as relay:
        await relay.call("POST", "/proxies", PROXY)
        refused = await relay.call("POST", "/proxies/p/toxics", f'{{"type":"slicer","attributes":{body}}}')
        assert refused.status == 400
        assert refused.body.startswith('{"error":"bad request body: ')


async def test_metrics_are_there_when_asked_for_and_live() -> None:
    async with api(metrics=True, runtime=True) as relay:
        await relay.call("POST", "/proxies", PROXY)
        shown = await relay.call("GET", "/metrics")
        assert shown.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert 'toxiproxy_proxy_received_bytes_total{direction="upstream",listener="127.0.0.1:' in shown.body
        assert "process_" in shown.body or "python_info" in shown.body


async def test_one_connection_serves_many_requests_in_pieces_and_in_a_row() -> None:
    async with api() as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        body = PROXY.encode()
        chunked = b"POST /proxies HTTP/1.1\r\nHost: r\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(chunked + b"%x\r\n%s\r\n5;x=y\r\n%s\r\n0\r\n\r\n" % (len(body) - 5, body[:-5], body[-5:]))
        writer.write(b"GET /version HTTP/1.1\r\nHost: r\r\n\r\nGET /version HTTP/1.0\r\n\r\n")
        said = await asyncio.wait_for(reader.read(), 5)
        writer.close()
        assert said.count(b"HTTP/1.1 201 ") == 1
        assert said.count(b"HTTP/1.1 200 ") == 2


@pytest.mark.parametrize("raw", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n", b"GET / SPDY/9\r\n\r\n"])
async def test_what_is_no_http_is_answered_and_closed(raw: bytes) -> None:
    async with api() as relay:
        reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
        writer.write(raw)
        assert (await asyncio.wait_for(reader.read(), 5)).startswith(b"HTTP/1.1 400 ")
        writer.close()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense", "listen tcp: address nonsense: missing port in address"),
        ("127.0.0.1:99999", "listen tcp: address 99999: invalid port"),
        ("1:2:3", "listen tcp: address 1:2:3: too many colons in address"),
    ],
)
async def test_an_address_that_means_nothing_is_told_in_known_words(text: str, problem: str) -> None:
    with pytest.raises(AddressError) as caught:
        await resolve(text)
    assert str(caught.value) == problem


async def test_nothing_means_everywhere_and_names_are_looked_up() -> None:
    assert (await resolve("")).everywhere
    assert (await resolve(":0")).everywhere
    assert await resolve("localhost:5") == Address("127.0.0.1", 5)
    assert str(await resolve("[::1]:5")) == "[::1]:5"
    assert split("[::1]:5") == ("::1", "5")
