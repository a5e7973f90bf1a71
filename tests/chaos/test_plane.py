"""The fault plane on real processes: a fault is proven by its canaries, and one that was not injected is not proven."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from holdfast.chaos.engines import relay_links
from holdfast.chaos.plane import Plane
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment, Wanted
from holdfast.target.descriptor import builtin_path, load
from holdfast.target.fault import Fault

LINK_FAULTS = [
    Fault("delay", "a-redis", {"seconds": 0.2}),
    Fault("delay", "a-redis", {"seconds": 0.3, "jitter": 0.1, "direction": "up"}),
    Fault("stall", "a-redis"),
    Fault("stall", "a-redis", {"direction": "up"}),
    Fault("stall", "a-redis", {"direction": "down"}),
    Fault("lose", "a-redis"),
    Fault("refuse", "a-redis"),
    Fault("cut", "a-redis"),
    Fault("reset", "a-redis"),
    Fault("rate", "a-redis", {"kilobytes": 10.0}),
    Fault("rate", "a-redis", {"kilobytes": 100.0, "direction": "down"}),
]
OTHERS = [
    Fault("delay", "a-client", {"seconds": 0.2}),
    Fault("cut", "a-client"),
    Fault("rate", "a-client", {"kilobytes": 5.0, "direction": "up"}),
    Fault("stop", "a"),
    Fault("kill", "a"),
    Fault("term", "a"),
    Fault("restart", "a"),
    Fault("clock", "a", {"seconds": 300.0}),
    Fault("clock", "a", {"seconds": 300.0, "direction": "behind"}),
    Fault("down", "redis"),
    Fault("empty", "redis"),
    Fault("frozen", "redis"),
    Fault("slow", "redis", {"seconds": 0.2}),
    Fault("failover", "redis"),
    Fault("replica-lost", "redis"),
]


@asynccontextmanager
async def deployed(guardian: Guardian, ports: PortPool) -> AsyncIterator[Deployment]:
    await guardian.attach()
    target = load(builtin_path("admission"))
    deployments = LocalDeployments(RunResources(guardian, ports, relay_links(seed=1), make_plane=Plane))
    wanted = Wanted("disruptive", frozenset({Capability.CHAOS_LATENCY}), {}, nodes=1)
    deployment = await deployments.lease(wanted, target, target.timings(builtin("admission")))
    yield deployment
    await deployments.give_back(deployment)


def named(fault: Fault) -> str:
    return fault.describe().replace(" ", "-")


@pytest.mark.parametrize("fault", [*LINK_FAULTS, *OTHERS], ids=named)
async def test_a_fault_is_proven_and_so_is_its_end(guardian: Guardian, ports: PortPool, fault: Fault) -> None:
    async with deployed(guardian, ports) as deployment:
        injected = await deployment.fault_plane().inject(fault)
        proof, healed = await injected.proof(), await injected.heal()
    assert proof.proven, proof.seen
    assert healed.proven, healed.seen


@pytest.mark.parametrize("fault", [*LINK_FAULTS[:6], *LINK_FAULTS[-2:]], ids=named)
async def test_a_relay_that_does_nothing_is_found_out(
    guardian: Guardian, ports: PortPool, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.chaos.relay.server.PROCESS", "tests.chaos.mutant_relay:main")
    async with deployed(guardian, ports) as deployment:
        injected = await deployment.fault_plane().inject(fault)
        proof = await injected.proof()
        await injected.heal()
    assert not proof.proven
    assert "answer after" in proof.seen


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault("flood", "a-redis"), "a link knows"),
        (Fault("flood", "a"), "a node knows"),
        (Fault("flood", "redis"), "the store knows"),
    ],
    ids=["link", "node", "store"],
)
async def test_an_unknown_fault_is_refused_in_one_sentence(
    guardian: Guardian, ports: PortPool, fault: Fault, said: str
) -> None:
    async with deployed(guardian, ports) as deployment:
        with pytest.raises(ValueError, match=said):
            await deployment.fault_plane().inject(fault)
