"""Bodies of requests, over a real socket."""

import asyncio
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web

from holdfast.reference.shared.bodies import BadBody, is_unicode, json_object, read_body


async def served(largest: int, *pieces: bytes, chunked: bool) -> str:
    seen: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        try:
            seen.set_result(json.dumps(json_object(await read_body(request, largest))))
        except BadBody as error:
            seen.set_result(f"{error.status} {error}")
        return web.Response()

    server = await asyncio.get_running_loop().create_server(web.Server(handle), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"

    async def stream() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async with aiohttp.ClientSession() as http:
        await http.post(url, data=stream() if chunked else b"".join(pieces))
    server.close()
    return await seen


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_is_read_up_to_its_limit(chunked: bool) -> None:
    assert await served(20, b'{"a": ', b"1}", chunked=chunked) == '{"a": 1}'
    assert await served(5, b'{"a": ', b"1}", chunked=chunked) == "413 The body is larger than 5 bytes."
    assert await served(20, b"{", chunked=chunked) == "400 The body is not valid JSON."
    assert await served(20, b"[1]", chunked=chunked) == "400 The body must be a JSON object."


def test_half_a_surrogate_pair_is_no_text() -> None:
    assert is_unicode("é")
    assert not is_unicode("\ud800")
