"""The descriptor of the intents reference: the reference reads every variable, and the deployment serves."""

import dataclasses
import tomllib

import aiohttp

from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.reference.intents.settings import Settings
from holdfast.target.descriptor import Target, builtin_path, load
from tests.fixtures.conftest import guardian, ports
from tests.fixtures.test_roles import own, standing
from tests.reference.world import until

__all__ = ["guardian", "ports"]


def test_every_variable_of_the_descriptor_is_read_by_the_reference() -> None:
    said = tomllib.loads(builtin_path("intents").read_text())
    named = {name for node in said["node"] for name in node["env"]}
    named |= {each["env"] for each in said["settings"].values() if "env" in each}
    assert named <= {each.metadata["env"] for each in dataclasses.fields(Settings)}


async def test_the_deployment_of_the_descriptor_stands_and_serves(guardian: Guardian, ports: PortPool) -> None:
    target = load(builtin_path("intents"))
    async with standing(guardian, ports, target, own({"api": 2, "worker": 1})) as deployment, http() as client:
        urls = [node.urls["http"] for node in deployment.nodes.values() if "http" in node.urls]
        ids = [(await post(client, url, target))["sessionId"] for url in urls]
        assert len(set(ids)) == 1

        async def ready() -> bool:
            headers = {"Authorization": f"Bearer {target.credentials['read']}"}
            async with client.get(f"{urls[0]}/api/v3/sessions/{ids[0]}", headers=headers) as answer:
                return bool((await answer.json())["state"] == "READY")

        await until(ready)
        for node in deployment.nodes.values():
            async with client.get(f"{node.urls['ops']}/metrics") as answer:
                assert "xg2g_v3_sessions_active" in await answer.text()


def http() -> aiohttp.ClientSession:
    return aiohttp.ClientSession()


async def post(client: aiohttp.ClientSession, url: str, target: Target) -> dict[str, str]:
    headers = {"Authorization": f"Bearer {target.credentials['write']}"}
    async with client.post(f"{url}/api/v3/intents", json={"serviceRef": "1:0:1:"}, headers=headers) as answer:
        assert answer.status == 202
        body: dict[str, str] = await answer.json()
        return body
