"""`[links]`: joining the proxies of a service whose operator has a Toxiproxy in front of its Redis."""

import asyncio
from pathlib import Path

from holdfast.chaos.engines import relay_links
from holdfast.chaos.proxied import ProxiedLink
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment, Wanted
from holdfast.target.descriptor import builtin_path, load
from tests.product.running import holdfast

SCHEDULE = """
[schedule]
name = "slow, then gone"
duration = "40s"

[[step]]
name = "slow"
on = "link:a-redis"
fault = "delay"
with = { seconds = "100ms real" }
at = "2s"
lasts = "5s"

[[step]]
name = "gone"
on = "link:b-redis"
fault = "cut"
after = "slow"
at = "2s"
lasts = "6s"
"""


def descriptor_of(deployment: Deployment, proxies: dict[str, ProxiedLink]) -> str:
    """What a stranger would write: addresses, credentials, and the names of their proxies."""
    text = builtin_path("admission").read_text()
    kept = text[text.index("[credentials]") : text.index("[observe]")] + text[text.index("[scaled]") :]
    nodes = "".join(
        f'[[node]]\nname = "{node.name}"\nurls = {{ http = "{node.urls["http"]}" }}\n'
        for node in deployment.nodes.values()
    )
    names = ", ".join(f'{name}-redis = "{link.proxy.name}"' for name, link in proxies.items())
    server = next(iter(proxies.values())).proxy.server.url
    links = f'[links]\ntoxiproxy = "{server}"\nproxies = {{ {names} }}\n'
    return f'[target]\nname = "theirs"\nspec = "admission"\ntime_scale = 0.2\n\n{nodes}\n{links}\n{kept}'


async def test_a_schedule_runs_against_proxies_that_stand_already(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    await guardian.attach()
    target = load(builtin_path("admission"))
    deployments = LocalDeployments(RunResources(guardian, ports, relay_links(seed=1)))
    wanted = Wanted("disruptive", frozenset({Capability.CHAOS_LATENCY}), {}, nodes=2)
    deployment = await deployments.lease(wanted, target, target.timings(builtin("admission")))
    links = {node: deployment.link(node) for node in deployment.nodes}
    proxied = {node: link for node, link in links.items() if isinstance(link, ProxiedLink)}
    (tmp_path / "theirs.toml").write_text(descriptor_of(deployment, proxied))
    (tmp_path / "schedule.toml").write_text(SCHEDULE)

    words = ["chaos", "admission", "--target", "theirs.toml", "--results", "results"]
    ended = await asyncio.to_thread(holdfast, tmp_path, *words, "--schedule", "schedule.toml")
    assert ended.code == 0, ended.text
    faults = ended.results()["checks"][0]["attempts"][-1]["faults"]
    assert [(fault["text"], fault["proven"]) for fault in faults] == [
        ("delay a-redis seconds 0.1 s", True),
        ("cut b-redis", True),
    ]
    ended = await asyncio.to_thread(holdfast, tmp_path, *words, "--random", "1")
    assert ended.code == 0, ended.text
    for link in proxied.values():
        assert await link.proxy.toxics() == []
    await deployments.give_back(deployment)
