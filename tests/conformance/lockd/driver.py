"""A real driver on a target without processes: enough to meet spies over real TLS."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.verifies import CheckSpec
from holdfast.check.x509 import write_private
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Authority
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import load

DESCRIPTOR = """
[target]
name = "nobody"
spec = "lockd"
time_scale = 0.02
[[node]]
names = ["a", "b"]
urls = {{ https = "https://127.0.0.1:1" }}
[credentials]
ca = "{folder}/ca.pem"
server_bundle = "{folder}/{{node}}.pem"
"""


@dataclass
class Node:
    urls: dict[str, str]
    pid: int | None = 1


@dataclass
class Deployed:
    nodes: dict[str, Node] = field(default_factory=dict)

    def fill(self, text: str, node: str = "") -> str:
        return text.replace("{node}", node)

    def run_queue_wait(self) -> float:
        return 0.0


def with_driver(folder: Path, check: Callable[[Lockd], Awaitable[None]], **urls: str) -> None:
    """Runs the work on a loop of its own, with a CA in the folder and nodes at these URLs."""
    authority = Authority.new("test ca")
    key = authority.key_pem
    write_private(folder / "ca.pem", authority.pem + key)
    for node in ("a", "b"):
        write_private(folder / f"{node}.pem", authority.bundle(authority.server(f"id-{node}")))
    (folder / "nobody.toml").write_text(DESCRIPTOR.format(folder=folder))
    target, catalogue = load(folder / "nobody.toml"), builtin("lockd")
    places = urls or {"a": "https://127.0.0.1:1"}
    deployed = Deployed({name: Node({"https": url}) for name, url in places.items()})

    async def run() -> None:
        context = Context(
            spec=CheckSpec(check),
            target=target,
            catalogue=catalogue,
            timings=target.timings(catalogue),
            deployment=cast("Deployment", deployed),
            audit=Audit(),
            seed=1,
            say_waiting=_nobody_hears,
            lease=_no_other,
        )
        async with context.stack:
            await check(await context.get(Lockd))

    asyncio.run(run())


def _nobody_hears(_what: str, _seconds: float) -> None:
    return None


async def _no_other() -> "Deployment":
    raise AssertionError("these tests have one deployment")


def lines(lockd: Lockd) -> list[str]:
    return [line.text for line in lockd.context.transcript.lines()]
