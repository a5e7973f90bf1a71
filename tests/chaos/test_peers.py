"""Links between nodes: one for each ordered pair, whether nodes are told addresses or tell each other their own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from holdfast.capability import Capability
from holdfast.catalogue import builtin
from holdfast.chaos.engines import join_link, relay_links
from holdfast.chaos.plane import Plane
from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.toxiproxy import Toxiproxy
from holdfast.deployment import Deployment, Wanted
from holdfast.fault import Fault
from holdfast.fixtures.deploy import Ground, LocalDeployments
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.target import Target, load

LINKS = frozenset({Capability.CHAOS_LATENCY})
NODES = """
[target]
name = "peers"
spec = "admission"

[[node]]
names = ["a", "b", "c"]
urls = { http = "http://127.0.0.1:{port}" }
start = { python = "tests.chaos.peers:main" }
ready = "/"
[node.env]
PORT = "{port}"
"""
TOLD = 'PEERS = "a={nodes.a.url},b={nodes.b.url},c={nodes.c.url}"\n'
BY_NAME = 'PROXY = "{proxy}"\nPEERS = "a={nodes.a.url},b={nodes.b.url},c={nodes.c.url}"\n'


def described(folder: Path, text: str) -> Target:
    (folder / "peers.toml").write_text(text)
    return load(folder / "peers.toml")


@asynccontextmanager
async def standing(guardian: Guardian, ports: PortPool, target: Target) -> AsyncIterator[Deployment]:
    deployments = LocalDeployments(Ground(guardian, ports, relay_links(1), make_plane=Plane, join_link=join_link))
    wanted = Wanted("disruptive", LINKS, {}, nodes=3)
    deployment = await deployments.lease(wanted, target, target.timings(builtin("admission")))
    yield deployment
    await deployments.give_back(deployment)


async def reach(deployment: Deployment) -> set[str]:
    """The pairs `ab` of which a gets an answer of b's."""
    found = set()
    async with aiohttp.ClientSession() as session:
        for one in deployment.nodes.values():
            for other in deployment.nodes.values():
                async with session.get(f"{one.urls['http']}/ask/{other.name}") as answer:
                    if answer.status == 200:
                        assert await answer.text() == other.urls["http"].rpartition(":")[2]
                        found.add(one.name + other.name)
    return found


ALL = {a + b for a in "abc" for b in "abc"}


@pytest.mark.parametrize("peers", [TOLD, BY_NAME], ids=["told", "by-name"])
@pytest.mark.parametrize("kind", ["refuse", "cut", "stall"])
async def test_one_direction_of_one_pair_is_struck(
    guardian: Guardian, ports: PortPool, tmp_path: Path, peers: str, kind: str
) -> None:
    await guardian.attach()
    async with standing(guardian, ports, described(tmp_path, NODES + peers)) as deployment:
        assert await reach(deployment) == ALL
        fault = await deployment.fault_plane().inject(Fault(kind, "a-b"))
        assert await reach(deployment) == ALL - {"ab"}
        assert (await fault.proof()).proven
        assert (await fault.heal()).proven
        assert await reach(deployment) == ALL


async def test_proxies_that_stand_already_are_used_and_left_clean(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    """`[links]`: a target that others run, with a Toxiproxy of theirs in between."""
    await guardian.attach()
    async with standing(guardian, ports, described(tmp_path, NODES + TOLD)) as theirs:
        relay = await RelayServer.start(guardian, "theirs", ports.take())
        server = Toxiproxy(relay.url)
        url = theirs.nodes["b"].urls["http"]
        proxy = await server.create("a to b", url.removeprefix("http://"))
        nodes = "".join(
            f'[[node]]\nname = "{n.name}"\nurls = {{ http = "{n.urls["http"]}" }}\n' for n in theirs.nodes.values()
        )
        links = f'[links]\ntoxiproxy = "{relay.url}"\nproxies = {{ a-b = "a to b" }}\n'
        target = described(tmp_path, f'[target]\nname = "x"\nspec = "admission"\n{nodes}{links}')
        async with standing(guardian, ports, target) as joined:
            fault = await joined.fault_plane().inject(Fault("delay", "a-b", {"seconds": 0.2}))
            proof = await fault.proof()
            assert proof.proven, proof.seen
            assert (await fault.heal()).proven
            await joined.peer_link("a", "b").stall()  # and nobody heals it
            assert await proxy.toxics()
        assert await proxy.toxics() == []
        assert (await server.find("a to b")).enabled
        await server.close()
