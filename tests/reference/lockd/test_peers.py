"""Calls to other nodes, against peers that answer in odd ways."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from holdfast.reference.lockd.peers import LARGEST_REPLY, PeerFailed, Peers
from holdfast.reference.shared.speech import Speech


@asynccontextmanager
async def calling() -> AsyncIterator[Peers]:
    node: Any = SimpleNamespace(
        identity=SimpleNamespace(bundle=None),
        settings=SimpleNamespace(tc_client_bundle="", peer_call_timeout=5.0),
        speech=Speech(),
    )
    made = Peers(node)
    try:
        yield made
    finally:
        await made.close()


@asynccontextmanager
async def answering(*pieces: bytes) -> AsyncIterator[str]:
    """Serves a peer that sends its body in pieces, with pauses long enough for each to arrive alone."""

    async def serve(request: web.BaseRequest) -> web.StreamResponse:
        reply = web.StreamResponse()
        await reply.prepare(request)
        for piece in pieces:
            await reply.write(piece)
            await asyncio.sleep(0.02)
        return reply

    async with RawTestServer(serve) as server:
        yield str(server.make_url("/"))


async def test_a_reply_in_pieces_is_read_as_a_whole() -> None:
    body = json.dumps({"endpoints": ["https://127.0.0.1:1"] * 100}).encode()
    async with answering(body[:7], body[7:1000], body[1000:]) as url, calling() as peers:
        reply = await peers.call("membership", "GET", url)
    assert len(reply.body["endpoints"]) == 100


async def test_a_reply_without_end_is_a_failed_peer() -> None:
    async with answering(b" " * LARGEST_REPLY, b" ") as url, calling() as peers:
        with pytest.raises(PeerFailed, match="more than"):
            await peers.call("membership", "GET", url)


async def test_whatever_breaks_a_call_is_a_failed_peer() -> None:
    """A session that is closed during a call raises RuntimeError, which must not end the node."""
    async with calling() as peers:
        with pytest.raises(PeerFailed, match="ClientConnectorError"):
            await peers.call("membership", "GET", "http://127.0.0.1:1/")
        await peers.close()
        with pytest.raises(PeerFailed, match="RuntimeError"):
            await peers.call("membership", "GET", "http://127.0.0.1:1/")
