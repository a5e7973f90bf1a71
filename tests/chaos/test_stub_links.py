"""Faults on the way from a node to a stub that a check plays, in checks that run as every other does."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from holdfast.chaos.engines import relay_links, udp_links
from holdfast.chaos.plane import Plane
from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.toxiproxy import Toxiproxy
from holdfast.check.audit import Audit
from holdfast.check.faults import Faults
from holdfast.check.finding import expect
from holdfast.check.grpc_stubs import GrpcStub
from holdfast.check.hooks import Hooks
from holdfast.check.stubs import HttpReply, Stubs
from holdfast.check.verifies import spec_of, verifies
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources
from holdfast.run.job import Job
from holdfast.run.perform import Outcome
from holdfast.run.scheduler import Scheduler
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import Target, load
from holdfast.target.fault import Fault
from tests.chaos.wire_node import METHOD
from tests.chaos.wire_world import THROUGH_PROXY, standing

NODES = """
[target]
name = "stubs"
spec = "admission"

[[node]]
names = ["a", "b"]
start = { python = "tests.chaos.wire_node:main" }
ready = "/"
[node.urls]
http = "http://127.0.0.1:{port}"
[node.env]
PORT = "{port}"
GRPC_PORT = "{port.grpc}"
QUIC_PORT = "{port.quic}"
UDP_PORT = "{port.udp}"
CERTS = "{certs}"
PEERS = "none={nodes.a.url}"
"""
LATER = """
[settings]
peers = { env = "PEERS" }
[stimulus]
where = { exec = "echo {stub.gc}" }
"""
SLOW = 0.4
LINKED: dict[str, Any] = {
    "isolation": "quiet",
    "start": "by hand",
    "needs": ["chaos.partition", "chaos.latency"],
    "waits": "grace",
}


async def asked(stubs: Stubs, node: str, what: str) -> int:
    url = stubs.deployment.nodes[node].urls["http"]
    async with aiohttp.ClientSession() as session, session.get(f"{url}/{what}") as reply:
        return reply.status


@verifies("AD-ADMIT-01", **LINKED, nodes=2, settings={"peers": "gc={stub.gc}"})
async def one_way_to_an_http_stub_is_cut(stubs: Stubs, faults: Faults, hooks: Hooks) -> None:
    gc = await stubs.http("gc")
    gc.on("GET /", HttpReply(body="here"))
    async with faults.during("cut", "a-stub.gc"):
        await stubs.deployment.start_nodes()
        assert [await asked(stubs, name, "get/gc") for name in "ab"] == [502, 200]
        said = (await hooks.stimulus("where", node="a")).document
        assert said == gc.url, "what the harness does itself does not go through the link of a node"
    expect([await asked(stubs, name, "get/gc") for name in "ab"], [200, 200])
    async with faults.during("delay", "b-stub.gc", seconds=SLOW):
        began = time.monotonic()
        assert await asked(stubs, "b", "get/gc") == 200
        assert time.monotonic() - began > SLOW
    again = await stubs.http("gc")  # at another port, under the same address for the nodes
    again.on("GET /", HttpReply(body="there"))
    assert await asked(stubs, "a", "get/gc") == 200
    assert len(again.received) == 1


@verifies("AD-ADMIT-01", **LINKED, settings={"peers": "gc={stub.gc}"})
async def the_way_to_a_grpc_stub_is_cut(stubs: Stubs, faults: Faults) -> None:
    gc = await stubs.grpc("gc")
    gc.on(METHOD, b"me")
    await stubs.deployment.start_nodes()
    assert await asked(stubs, "a", "ask/gc") == 200
    for kind in ("cut", "stall", "refuse"):
        async with faults.during(kind, "a-stub.gc"):
            assert await asked(stubs, "a", "ask/gc") == 502
    expect(await asked(stubs, "a", "ask/gc"), 200)


@verifies("AD-ADMIT-01", **LINKED, nodes=1)
async def a_node_is_told_of_a_stub_later(stubs: Stubs, faults: Faults) -> None:
    await stubs.http("gc")
    await stubs.deployment.start_nodes()
    with pytest.raises(ValueError, match=r"a-stub\.gc: no such link is open here"):
        await faults.inject("cut", "a-stub.gc")
    stubs.deployment.nodes["a"].configure(settings={"peers": "gc={stub.gc}"})
    await stubs.deployment.nodes["a"].restart()
    late = await stubs.deployment.start_node("node", settings={"peers": "gc={stub.gc}"})
    async with faults.during("cut", f"{late.name}-stub.gc"):
        expect([await asked(stubs, name, "get/gc") for name in ("a", late.name)], [404, 502])


@pytest.fixture
def guardian() -> Iterator[Guardian]:
    launched = Guardian.launch(preload=["tests.chaos.wire_node"])
    yield launched
    launched.close()


def described(folder: Path, more: str = "") -> Target:
    (folder / "stubs.toml").write_text(NODES + more + LATER)
    return load(folder / "stubs.toml")


async def outcome_of(function: object, target: Target, guardian: Guardian, ports: PortPool) -> Outcome:
    await guardian.attach()
    catalogue, spec = builtin("admission"), spec_of(function)
    assert spec is not None
    job = Job("check", spec, target, catalogue, target.timings(catalogue))
    outcomes: list[Outcome] = []
    audit = Audit()
    audit.start()
    resources = RunResources(guardian, ports, relay_links(1), make_plane=Plane, start_udp_links=udp_links(1))
    deployments = LocalDeployments(resources)
    await Scheduler(deployments, audit, Stream(), 1, lambda _, outcome: outcomes.append(outcome)).run([job])
    audit.stop()
    await deployments.close()
    return outcomes[-1]


@pytest.mark.parametrize(
    ("check", "more"),
    [
        pytest.param(one_way_to_an_http_stub_is_cut, "", id="http"),
        pytest.param(a_node_is_told_of_a_stub_later, "", id="told-later"),
        pytest.param(the_way_to_a_grpc_stub_is_cut, "", id="grpc"),
        pytest.param(the_way_to_a_grpc_stub_is_cut, THROUGH_PROXY, id="grpc-through-the-gateway"),
    ],
)
async def test_faults_on_the_way_to_a_stub_have_receipts(
    guardian: Guardian, ports: PortPool, tmp_path: Path, check: object, more: str
) -> None:
    outcome = await outcome_of(check, described(tmp_path, more), guardian, ports)
    assert outcome.verdict is Verdict.PASS, outcome.reason
    assert outcome.evidence.faults
    assert all(fault.proven for fault in outcome.evidence.faults)
    assert {fault.subject.partition("-")[2] for fault in outcome.evidence.faults} == {"stub.gc"}


@verifies("AD-ADMIT-01", isolation="quiet", start="by hand", settings={"peers": "gc={stub.gc}"})
async def nothing_stands_between_a_node_and_a_stub(stubs: Stubs) -> None:
    gc = await stubs.http("gc")
    expect(stubs.deployment.fill("{stub.gc}", "a"), gc.url)


async def test_a_check_without_faults_pays_for_no_link(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    outcome = await outcome_of(nothing_stands_between_a_node_and_a_stub, described(tmp_path), guardian, ports)
    assert outcome.verdict is Verdict.PASS, outcome.reason


async def test_a_proxy_of_the_operator_in_front_of_a_stub_is_asked_in_its_own_protocol(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    await guardian.attach()
    relay, stub = await RelayServer.start(guardian, "theirs", ports.take()), ports.take()
    server = Toxiproxy(relay.url)
    await server.create("their stub", f"127.0.0.1:{stub}")
    (tmp_path / "joined.toml").write_text(
        f'[target]\nname = "x"\nspec = "admission"\n[[node]]\nname = "a"\nurls = {{ http = "http://127.0.0.1:9" }}\n'
        f'[links]\ntoxiproxy = "{relay.url}"\nproxies = {{ "a-stub.gc" = "their stub" }}\n'
    )
    async with standing(guardian, ports, load(tmp_path / "joined.toml")) as deployment:
        played = GrpcStub("gc")
        await played.settle("127.0.0.1", "127.0.0.1", stub, lambda _: None)
        await deployment.add_stub("gc", played.url, played.kind)
        injected = await deployment.fault_plane().inject(Fault("stall", "a-stub.gc"))
        proof, healed = await injected.proof(), await injected.heal()
        await played.close()
        assert proof.proven, proof.seen
        assert healed.proven, healed.seen
    await server.close()
