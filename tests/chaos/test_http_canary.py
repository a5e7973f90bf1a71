"""Canaries that ask HTTP: a server may answer in either version and end each connection after its answer."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast

import pytest

from holdfast.chaos.faults.link import LinkFault
from holdfast.chaos.faults.questions import HttpQuestion
from holdfast.chaos.links.link import Link
from holdfast.target import deployment
from holdfast.target.fault import Fault

FAULTS = [Fault("delay", "a-client", {"seconds": 0.2}), Fault("stall", "a-client"), Fault("cut", "a-client")]


async def _answer_and_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.0 404 Not Found\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
    writer.close()


class NamedLink(Link):
    name = "a-client"


@contextlib.asynccontextmanager
async def linked() -> AsyncIterator[NamedLink]:
    server = await asyncio.start_server(_answer_and_end, "127.0.0.1", 0)
    link = NamedLink("127.0.0.1", server.sockets[0].getsockname()[1])
    link.listen()
    try:
        yield link
    finally:
        await link.close()
        server.close()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
async def test_a_fault_is_proven_on_a_server_that_ends_each_connection(fault: Fault) -> None:
    async with linked() as link:
        injected = await LinkFault(fault, cast("deployment.Link", link), HttpQuestion, None).put()
        proof = await injected.proof()
        assert proof.proven, proof.seen
        assert (await injected.heal()).proven


async def test_a_fault_that_is_not_there_is_not_proven() -> None:
    async with linked() as link:
        injected = await LinkFault(FAULTS[0], cast("deployment.Link", link), HttpQuestion, None).put()
        await link.heal()
        assert not (await injected.proof()).proven
        await injected.heal()
