"""`holdfast doctor`: tries what a descriptor promises and prints what was seen."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import aiohttp
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.capability import HOOK, Capability
from holdfast.catalogue import builtin
from holdfast.deployment import Deployment, Node, Wanted
from holdfast.fixtures.tls import client_tls
from holdfast.observe import Metrics, json_lines
from holdfast.stream import Stream
from holdfast.target import Target, load
from holdfast.wiring import Engine, EngineOptions

_PATIENCE = 5.0


@dataclass(frozen=True)
class Seen:
    good: bool
    what: str
    detail: str

    def line(self) -> str:
        return f"  {'ok  ' if self.good else 'FAIL'}  {self.what:<28} {self.detail}"


def examine(path: Path, *, disruptive: bool) -> int:
    target = load(path)
    catalogue = builtin(target.spec)
    print(f"{target.name}: {target.spec}, profile {target.profile}, time scale {target.time_scale:g}")
    engine = Engine(target, Stream(None), EngineOptions())
    try:
        engine.open()
        try:
            deployment = engine.lease(Wanted("shared", frozenset(), {}), target, target.timings(catalogue))
        except Exception as error:  # noqa: BLE001 - whatever a foreign command does, the user gets one sentence
            print(Seen(False, "start", str(error)).line())
            return 2
        seen = engine.call(_look(target, deployment, may_disrupt=disruptive or target.startable))
    finally:
        engine.close()
    print("\n".join(one.line() for one in seen))
    _print_capabilities(target)
    return 0 if all(one.good for one in seen) else 1


def _print_capabilities(target: Target) -> None:
    have, wanted = target.capabilities(), target.in_profile()
    print(f"  sees and does: {', '.join(sorted(have & wanted))}")
    for capability in sorted(wanted - have):
        print(f"  without {capability}: needs {HOOK[capability]}")


async def _look(target: Target, deployment: Deployment, *, may_disrupt: bool) -> list[Seen]:
    return [seen async for seen in _looks(target, deployment, may_disrupt=may_disrupt)]


async def _looks(target: Target, deployment: Deployment, *, may_disrupt: bool) -> AsyncIterator[Seen]:
    for spec in target.nodes:
        node = deployment.nodes[spec.name]
        for kind, url in node.urls.items():
            if kind == "http" or spec.ready_as:
                shown = deployment.fill(spec.ready_as, node.name)
                yield await _tried(f"node {node.name} answers", partial(_get, url + spec.ready, shown))
                if metrics := target.observe.get("metrics"):
                    yield await _tried(f"node {node.name} metrics", partial(_metrics, f"{url}{metrics}"))
    if target.observe.get("redis") is not None:
        yield await _tried("redis", lambda: _ping(deployment))
    if target.observe.get("events") is not None:
        yield await _tried("events", lambda: _events(deployment))
    if may_disrupt:
        async for seen in _controls(target, next(iter(deployment.nodes.values()))):
            yield seen


async def _tried(what: str, look: Callable[[], Awaitable[str]]) -> Seen:
    try:
        async with asyncio.timeout(_PATIENCE):
            return Seen(True, what, await look())
    except Exception as error:  # noqa: BLE001 - the finding is the answer
        return Seen(False, what, str(error) or type(error).__name__)


async def _get(url: str, shown: str) -> str:
    tls = client_tls(Path(shown)) if shown else True
    async with aiohttp.ClientSession() as http, http.get(url, ssl=tls) as reply:
        if not reply.ok:
            raise RuntimeError(f"GET {url}: {reply.status}")
        return f"GET {url}: {reply.status}"


async def _metrics(url: str) -> str:
    async with aiohttp.ClientSession() as http, http.get(url) as reply:
        return f"{len(Metrics.parse(await reply.text()).types)} metric families at {url}"


async def _ping(deployment: Deployment) -> str:
    url = deployment.store_url
    redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0))
    try:
        await redis.execute_command("PING")  # type: ignore[no-untyped-call]  # untyped in redis-py
        return f"PING at {url}"
    finally:
        await redis.aclose()


async def _events(deployment: Deployment) -> str:
    lines = [line for node in deployment.nodes.values() for line in node.log_lines()]
    return f"{sum(1 for _ in json_lines(lines))} JSON lines so far"


async def _controls(target: Target, node: Node) -> AsyncIterator[Seen]:
    have = target.capabilities()
    if Capability.CONTROL_PAUSE in have:
        yield await _tried(f"pause and resume {node.name}", lambda: _paused(node))
    if {Capability.CONTROL_KILL, Capability.CONTROL_RESTART} <= have:
        yield await _tried(f"kill and restart {node.name}", lambda: _restarted(node))


async def _paused(node: Node) -> str:
    await node.pause()
    await node.resume()
    return "done"


async def _restarted(node: Node) -> str:
    await node.kill()
    await node.restart()
    return "back"
