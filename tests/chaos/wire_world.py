"""Deployments of `wire_node` for the tests of links: HTTP, gRPC, QUIC and UDP on every node."""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import aiohttp

from holdfast.chaos.engines import join_link, relay_links, udp_links
from holdfast.chaos.plane import Plane
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.deployment import StandingDeployment
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources, StartLinks
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Wanted
from holdfast.target.descriptor import Target, load
from holdfast.target.fault import Fault

NODES = """
[target]
name = "wires"
spec = "admission"

[[node]]
names = [{names}]
start = {{ python = "tests.chaos.wire_node:main" }}
ready = "/"
[node.urls]
http = "http://127.0.0.1:{{port}}"
grpc = "http://127.0.0.1:{{port.grpc}}"
quic = "https://127.0.0.1:{{port.quic}}"
echo = "udp://127.0.0.1:{{port.udp}}"
[node.env]
PORT = "{{port}}"
GRPC_PORT = "{{port.grpc}}"
QUIC_PORT = "{{port.quic}}"
UDP_PORT = "{{port.udp}}"
CERTS = "{{certs}}"
PEERS = "{peers}"
"""
THROUGH_PROXY = 'http_proxy = "{proxy}"\n'


def described(folder: Path, *names: str, more: str = "") -> Target:
    listed = ", ".join(f'"{name}"' for name in names)
    peers = ",".join(f"{name}={{nodes.{name}.grpc}}" for name in names)
    (folder / "wires.toml").write_text(NODES.format(names=listed, peers=peers) + more)
    return load(folder / "wires.toml")


@contextlib.asynccontextmanager
async def standing(
    guardian: Guardian, ports: PortPool, target: Target, start_links: StartLinks | None = None
) -> AsyncIterator[StandingDeployment]:
    if guardian.channel.loop is None:
        await guardian.attach()
    resources = RunResources(
        guardian,
        ports,
        start_links or relay_links(1),
        make_plane=Plane,
        join_link=join_link,
        start_udp_links=udp_links(1),
    )
    deployments = LocalDeployments(resources)
    wanted = Wanted("disruptive", frozenset({Capability.CHAOS_PARTITION}), {}, nodes=len(target.nodes))
    deployment = await deployments.lease(wanted, target, target.timings(builtin("admission")))
    try:
        yield cast("StandingDeployment", deployment)
    finally:
        await deployments.give_back(deployment)


async def calls(deployment: StandingDeployment) -> set[tuple[str, str]]:
    """Return the pairs of nodes in which the first gets an answer from the second over gRPC."""
    found = set()
    async with aiohttp.ClientSession() as session:
        for one in deployment.nodes.values():
            for other in deployment.nodes.values():
                async with session.get(f"{one.urls['http']}/ask/{other.name}") as answer:
                    if answer.status == 200:
                        assert await answer.text() == other.urls["grpc"].rpartition(":")[2]
                        found.add((one.name, other.name))
    return found


async def proven(deployment: StandingDeployment, fault: Fault) -> str:
    """Put a fault on, heal it and see both proven; return the receipts."""
    injected = await deployment.fault_plane().inject(fault)
    proof, healed = await injected.proof(), await injected.heal()
    assert proof.proven, proof.seen
    assert healed.proven, healed.seen
    return f"{proof.seen}; {healed.seen}"
