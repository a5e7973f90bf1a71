"""A check's context on a real deployment of a small target, and a driver for it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

import aiohttp

from holdfast.chaos.links.client import LinkServer
from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import CheckSpec
from holdfast.conformance.shared.http import HttpDriver
from holdfast.conformance.shared.wire import Answer, Request
from holdfast.fixtures.deploy import LocalDeployments
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import RunResources
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment, Wanted
from holdfast.target.descriptor import load

DESCRIPTOR = """
[target]
name = "greeters"
spec = "lockd"
time_scale = 0.02
[[node]]
names = ["a", "b"]
urls = { http = "http://127.0.0.1:{port}" }
start = { python = "tests.conformance.shared.programs:main" }
ready = "/"
[node.env]
PORT = "{port}"
[settings]
greeting = { env = "GREETING" }
[observe]
store = '''printf '\\173"node": "%s"\\175\\n' {node}'''
"""


class Greeters(HttpDriver[Answer]):
    answer: ClassVar[type[Answer]] = Answer
    settled: ClassVar[str] = "self_listed_max"
    hung_up = 0

    async def hang_up(self) -> None:
        self.hung_up += 1

    async def ask(self, request: Request, node: str = "a", within: float = 5.0) -> Answer:
        async with aiohttp.ClientSession() as http:
            exchange = self.exchange(lambda: http, self.url_of(node, "http"), request, within=within)
            return await self.converse(request.describe, request, exchange)

    def lines(self) -> list[str]:
        return [line.text for line in self.context.transcript.lines()]


def context_on(deployment: Deployment) -> Context:
    async def no_other() -> Deployment:
        raise AssertionError("these tests have one deployment")

    catalogue = builtin("lockd")
    return Context(
        spec=CheckSpec(context_on),
        target=deployment.target,
        catalogue=catalogue,
        timings=deployment.target.timings(catalogue),
        deployment=deployment,
        audit=Audit(),
        seed=1,
        say_waiting=lambda _what, _seconds: None,
        lease=no_other,
    )


@asynccontextmanager
async def greeters(
    guardian: Guardian, ports: PortPool, folder: Path, descriptor: str = DESCRIPTOR
) -> AsyncIterator[Greeters]:
    """Gives a driver on two real nodes; what the check has put on its stack is ended before the nodes."""

    async def start_links(guard: Guardian, _ports: PortPool, name: str) -> LinkServer:
        return await LinkServer.start(guard, name)

    await guardian.attach()
    (folder / "greeters.toml").write_text(descriptor)
    target = load(folder / "greeters.toml")
    deployments = LocalDeployments(RunResources(guardian, ports, start_links))
    wanted = Wanted("disruptive", frozenset({"multi_node"}), {})
    deployment = await deployments.lease(wanted, target, target.timings(builtin("lockd")))
    context = context_on(deployment)
    try:
        async with context.stack:
            yield Greeters(context, SpecTime(context))
    finally:
        await deployments.close()
