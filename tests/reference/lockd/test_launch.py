"""A node that the guardian forks, as in a run."""

import signal
from functools import partial

import aiohttp

from holdfast.conformance.lockd import bundles
from holdfast.fixtures.launcher import Command, Guardian
from holdfast.fixtures.ports import PortPool
from tests.fixtures.conftest import guardian, ports
from tests.reference.lockd.world import context_for, until

__all__ = ["guardian", "ports"]


async def test_a_forked_node_serves_and_stops(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()
    folder, port = bundles.make_bundles(guardian.folder / "bundles", ["a"]), ports.take()
    env = {
        "LOCKD_LISTEN": f"127.0.0.1:{port}",
        "LOCKD_BUNDLE": str(folder / "a" / "server.pem"),
        "LOCKD_TC_CLIENT_BUNDLE": str(folder / "tc-client.pem"),
        "LOCKD_TC_ALLOW_DEFAULT_CA": "true",
        "HOLDFAST_LEADER_TTL": "1",
    }
    process = await guardian.spawn(Command(python="holdfast.reference.lockd.node:main"), name="a", env=env)
    context = context_for((folder / "tc-client.pem").read_bytes())

    async def leads(http: aiohttp.ClientSession) -> bool:
        try:
            async with http.get(f"https://127.0.0.1:{port}/v1/tc/leader") as reply:
                return bool((await reply.json()).get("leader_endpoint"))
        except aiohttp.ClientError:
            return False

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, force_close=True)) as http:
        await until(partial(leads, http))
    await process.signal(signal.SIGTERM)
    assert await process.wait(10) == 0
