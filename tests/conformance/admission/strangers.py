"""The real driver in front of small HTTP servers that nobody would call complete: what strangers are like."""

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from aiohttp import web

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.verifies import CheckSpec, Claim
from holdfast.conformance.admission.client import Admission
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import load

DESCRIPTOR = """
[target]
name = "stranger"
spec = "admission"
time_scale = 0.1
[[node]]
name = "a"
urls = {{ http = "{url}" }}
[credentials]
{credentials}
[dialect]
{dialect}
"""
SIGNED = 'auth_secret = "secret"\nadmin_token = "admin"'
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Node:
    urls: dict[str, str]


@dataclass
class Deployed:
    nodes: dict[str, Node] = field(default_factory=dict)

    def run_queue_wait(self) -> float:
        return 0.0


def against(
    handler: Handler,
    folder: Path,
    check: Callable[[Admission], Awaitable[None]],
    *,
    dialect: str = "",
    credentials: str = SIGNED,
    row: str = "AD-ADMIT-08",
) -> None:
    """Serves every request with `handler` and runs the check, as one that verifies this row, with the real driver."""
    asyncio.run(_against(handler, folder, check, dialect, credentials, row))


async def _against(
    handler: Handler, folder: Path, check: Callable[[Admission], Awaitable[None]], dialect: str, secrets: str, row: str
) -> None:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    (folder / "stranger.toml").write_text(DESCRIPTOR.format(url=url, dialect=dialect, credentials=secrets))
    target, catalogue = load(folder / "stranger.toml"), builtin("admission")
    context = Context(
        spec=CheckSpec(check, [Claim(row, 1)], waits="0"),
        target=target,
        catalogue=catalogue,
        timings=target.timings(catalogue),
        deployment=cast("Deployment", Deployed({"a": Node({"http": url})})),
        audit=Audit(),
        seed=1,
        say_waiting=lambda _what, _seconds: None,
        lease=_no_other,
    )
    try:
        async with context.stack:
            await check(await context.get(Admission))
    finally:
        await runner.cleanup()


async def _no_other() -> Deployment:
    raise AssertionError("these tests have one deployment")


def transcript(admission: Admission) -> str:
    return "\n".join(line.text for line in admission.context.transcript.lines())


def told(status: int = 200, headers: dict[str, str] | None = None, **body: object) -> web.Response:
    return web.Response(status=status, text=json.dumps(body), content_type="application/json", headers=headers)


def admits(token: str | None = None) -> web.Response:
    """Answers with a new session, without a token unless one is given."""
    return told(outcome="success", sessionId=str(uuid.uuid4()), reconnectionToken=token)
