"""`holdfast doctor`: tries what a descriptor promises and prints what was seen."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.chaos.toxiproxy import Toxiproxy
from holdfast.check.observe import Metrics, json_lines
from holdfast.cli.doctor_first import first_looks
from holdfast.cli.doctor_hooks import hook_looks
from holdfast.cli.doctor_lines import Seen, tried
from holdfast.cli.store_members import store_looks
from holdfast.cli.wait import wait_for
from holdfast.fixtures.probes import Asked, probe
from holdfast.fixtures.tls import client_tls
from holdfast.run.harness import Harness
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import Catalogue, builtin
from holdfast.target import preflight
from holdfast.target.credential_files import wrong_file
from holdfast.target.deployment import Deployment, Node, Wanted
from holdfast.target.descriptor import NodeSpec, Target, load
from holdfast.target.roles import NODE
from holdfast.target.url_protocol import speaks_otherwise

# A node says itself within which time it is ready, and is killed first.
_RESTART_TIMEOUT = 60.0


def examine(path: Path, *, disruptive: bool, wait: str | None = None) -> int:
    """Exit 0: all that was promised and could be tried works; 1: something does not; 2: nobody could run against it."""
    wait_for(partial(load, path), str(path), wait)
    target = load(path)
    catalogue = builtin(target.spec)
    print(f"{target.name}: {target.spec}, profile {target.profile}, time scale {target.time_scale:g}{_roles(target)}")
    if missing := preflight.no_program(target) or wrong_file(target):
        print(Seen(False, "start" if preflight.no_program(target) else "files", missing).line())
        return 2
    harness = Harness(target, Stream())
    try:
        harness.open()
        try:
            deployment = harness.lease(Wanted("shared", frozenset(), {}), target, target.timings(catalogue))
        except Exception as error:  # noqa: BLE001 - whatever a foreign command does, the user gets one sentence
            print(Seen(False, "start", str(error)).line())
            return 2
        first = harness.call(first_looks(target, catalogue, deployment, harness.audit))
        seen = first + harness.call(_look(target, catalogue, deployment, may_disrupt=disruptive or target.startable))
    finally:
        harness.close()
    print("\n".join(one.line() for one in seen))
    _print_capabilities(target)
    _print_declared(target, catalogue)
    return _ending(first, seen)


def _ending(first: list[Seen], seen: list[Seen]) -> int:
    if not any(one.good for one in seen):
        print("  nothing that the descriptor promises works, or could be tried: there is nothing to run against")
        return 2
    if any(one.good is False for one in first):
        return 2
    return 1 if any(one.good is False for one in seen) else 0


def _roles(target: Target) -> str:
    """The end of the first line: how many nodes of each role, where there are roles."""
    return "" if target.roles == (NODE,) else "".join(f", {target.count(role)} {role}" for role in target.roles)


def _print_capabilities(target: Target) -> None:
    have, wanted = target.capabilities(), target.in_profile()
    print(f"  sees and does: {', '.join(sorted(have & wanted))}")
    for capability in sorted(wanted - have):
        print(f"  without {capability}: needs {target.hook(capability)}")


def _print_declared(target: Target, catalogue: Catalogue) -> None:
    """What the descriptor says of itself, which nobody can try."""
    for key, reason in target.not_offered.reasons.items():
        print(f"  not offered: {key} ({target.not_offered.kind_of(key, catalogue)}): {reason}")
    for name, seconds in target.windows.items():
        print(f"  may keep silent: {name}, {seconds:g} s")


async def _look(target: Target, catalogue: Catalogue, deployment: Deployment, *, may_disrupt: bool) -> list[Seen]:
    """Look at everything; hooks before nodes are killed, since they may need what those nodes have."""
    seen = [one async for one in _looks(target, deployment)]
    seen += [one async for one in hook_looks(target, catalogue, deployment, may_disrupt=may_disrupt)]
    if may_disrupt:
        firsts = [next(spec for spec in target.nodes if spec.role == role) for role in target.roles]
        for first in firsts:
            seen += [one async for one in _controls(target, first, deployment.nodes[first.name])]
    else:
        seen += [
            Seen(None, f"[[node]] {spec.name} {hook}", "not tried: it disrupts the node; add --disruptive")
            for spec in target.nodes
            for hook in spec.hooks
        ]
    return seen


async def _looks(target: Target, deployment: Deployment) -> AsyncIterator[Seen]:
    for spec in target.nodes:
        async for seen in _node_looks(target, deployment, spec):
            yield seen
    if target.observe.get("redis") is not None:
        yield await tried("redis", lambda: _ping(deployment))
    if deployment.store is not None and deployment.store.plan.is_set:
        async for seen in store_looks(deployment.store):
            yield seen
    if target.observe.get("events") is not None:
        yield await _events(deployment)
    for link, proxy in target.links.get("proxies", {}).items():
        yield await tried(f"link {link}", partial(_proxy, str(target.links["toxiproxy"]), str(proxy)))


async def _node_looks(target: Target, deployment: Deployment, spec: NodeSpec) -> AsyncIterator[Seen]:
    node, what = deployment.nodes[spec.name], _called(target, spec)
    if spec.ready and (spec.start or spec.ready.kind != "log"):  # of others' nodes only later lines of the log are read
        yield await tried(f"{what} is ready", partial(_ready, deployment, spec, node))
    for kind, url in node.urls.items():
        if preflight.takes_connections(kind, url):
            yield await tried(f"{what} {kind}", partial(_connect, url))
        else:
            yield Seen(None, f"{what} {kind}", f"{url} not tried: it takes datagrams, which only a check sends")
    if (metrics := target.metrics_of(spec)) and (address := metrics.at(node.urls)):
        yield await tried(f"{what} metrics", partial(_metrics, address, deployment.fill(spec.ready_as, node.name)))


def _called(target: Target, spec: NodeSpec) -> str:
    return f"node {spec.name}" + (f" ({spec.role})" if target.roles != (NODE,) else "")


async def _ready(deployment: Deployment, spec: NodeSpec, node: Node) -> str:
    assert spec.ready is not None
    wanted = spec.ready.filled(partial(deployment.fill, node=node.name))
    shown = deployment.fill(spec.ready_as, node.name)
    asked = Asked(node.urls, lambda: deployment.store_url, node.log_lines, Path(shown) if shown else None)
    ask = await probe(wanted, asked, fresh=False)
    if not await ask():
        raise RuntimeError(f"no {wanted.describe()}")
    return wanted.describe()


async def _connect(url: str) -> str:
    parts = urlsplit(url)
    _, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.close()
    if problem := await asyncio.to_thread(speaks_otherwise, url):
        raise RuntimeError(problem)
    return f"{url} accepts connections"


async def _metrics(url: str, shown: str) -> str:
    tls = client_tls(Path(shown)) if shown else False  # whose certificate it is does not matter here
    async with aiohttp.ClientSession() as http, http.get(url, ssl=tls) as reply:
        if not reply.ok:
            raise RuntimeError(f"GET {url}: {reply.status}")
        families = len(Metrics.parse(await reply.text()).types)
        if not families:
            raise RuntimeError(f"GET {url}: no Prometheus metrics in the answer")
        return f"{families} metric families at {url}"


async def _proxy(url: str, name: str) -> str:
    server = Toxiproxy(url)
    try:
        proxy = await server.find(name)
        state = "" if proxy.enabled else ", switched off"
        return f"proxy {name} of {url}: {proxy.listen} to {proxy.fields['upstream']}{state}"
    finally:
        await server.close()


async def _ping(deployment: Deployment) -> str:
    url = deployment.store_url
    redis = Redis.from_url(url, retry=Retry(NoBackoff(), 0))
    try:
        await redis.execute_command("PING")  # type: ignore[no-untyped-call]  # untyped in redis-py
        return f"PING at {url}"
    finally:
        await redis.aclose()


async def _events(deployment: Deployment) -> Seen:
    """A node may have had nothing to say yet, so silence is neither good nor bad."""
    lines = [line for node in deployment.nodes.values() for line in node.log_lines()]
    found = sum(1 for _ in json_lines(lines))
    return Seen(True, "events", f"{found} JSON lines so far") if found else Seen(None, "events", "no JSON line so far")


async def _controls(target: Target, spec: NodeSpec, node: Node) -> AsyncIterator[Seen]:
    """Try pause and restart on one node, as far as its own entry allows them."""
    allowed = {*spec.hooks} if not target.startable else {"pause", "resume", "kill", "restart"}
    what = _called(target, spec).removeprefix("node ")
    if {"pause", "resume"} <= allowed:
        yield await tried(f"pause and resume {what}", lambda: _paused(node))
    if {"kill", "restart"} <= allowed:
        yield await tried(f"kill and restart {what}", lambda: _restarted(node), _RESTART_TIMEOUT)


async def _paused(node: Node) -> str:
    await node.pause()
    await node.resume()
    return "done"


async def _restarted(node: Node) -> str:
    await node.kill()
    await node.restart()
    return "back"
