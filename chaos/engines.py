"""Links behind a fault engine: our relay or a real Toxiproxy, the same verbs on both.

What the two do differently is here and nowhere else. A Toxiproxy has no stall in which connections survive; up to 2.12
a rate of nothing is one, from 2.13 on a delay longer than any run. It can reset only connections that were opened
under the toxic, so its `cut` ends live ones cleanly and resets newcomers, and its `reset` is a clean end.
"""

import asyncio
import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.toxiproxy import Proxy, Toxiproxy, ToxiproxyError, UnreachableError
from holdfast.deployment import LinkCounters, StartError
from holdfast.finding import NotObservable
from holdfast.fixtures.deploy import StartLinks
from holdfast.fixtures.launcher import Command, Guardian, Process, ready
from holdfast.fixtures.ports import PortPool

STREAMS = {"up": ("upstream",), "down": ("downstream",), "both": ("upstream", "downstream")}
MILLISECONDS = 1000
A_DAY = 86_400 * MILLISECONDS
START_DEADLINE = 10.0
CLOSE_DEADLINE = 2.0
# Where `holdfast doctor --install toxiproxy` puts it.
CACHE = Path("~/.cache/holdfast/bin/toxiproxy-server")


@dataclass(frozen=True)
class Hold:
    """How an engine holds everything without losing a connection: a toxic and its attributes."""

    toxic: str
    attributes: Mapping[str, int]


BLACKHOLE = Hold("blackhole", {})
RATE_OF_NOTHING = Hold("bandwidth", {"rate": 0})
DELAY_OF_A_DAY = Hold("latency", {"latency": A_DAY})


class ProxiedLink:
    """A link that stands in a proxy. Every verb is in force when it returns."""

    def __init__(self, proxy: Proxy, hold: Hold, *, relay: bool) -> None:
        self.name = proxy.name
        self.port = proxy.port
        self.proxy = proxy
        self._hold = hold
        self._relay = relay

    async def delay(self, seconds: float, jitter: float = 0.0, direction: str = "both") -> None:
        attributes = {"latency": round(seconds * MILLISECONDS), "jitter": round(jitter * MILLISECONDS)}
        await self._put("latency", direction, attributes)

    async def stall(self, direction: str = "both") -> None:
        await self._put(self._hold.toxic, direction, dict(self._hold.attributes), name="stall")

    async def rate(self, kilobytes: int, direction: str = "both") -> None:
        """So many thousand bytes a second."""
        await self._put("bandwidth", direction, {"rate": kilobytes})

    async def refuse(self) -> None:
        if self._relay:
            await self.proxy.reset()
        await self.proxy.disable()

    async def cut(self) -> None:
        """Connections break, those that stand and every new one."""
        if self._relay:
            await self._put("reset_peer", "both", {"timeout": 0})
            await self.proxy.reset()
        else:
            await self.proxy.disable()
            await self._put("reset_peer", "both", {"timeout": 0})
            await self.proxy.enable()

    async def reset(self) -> None:
        """The connections that stand break, once."""
        if self._relay:
            await self.proxy.reset()
        else:
            await self.proxy.disable()
            await self.proxy.enable()

    async def lead_to(self, host: str, port: int) -> None:
        """Connections go there from now on; those that stand break."""
        await self.proxy.update(upstream=f"{host}:{port}")

    async def heal(self) -> None:
        await self.proxy.heal()

    async def counters(self) -> LinkCounters:
        if not self._relay:
            raise NotObservable("[[node]] start with {redis} and the relay; a Toxiproxy counts nothing that is open")
        tally = await self.proxy.counters()
        up, down, many = tally["upstream"], tally["downstream"], tally["connections"]
        return LinkCounters(
            up["bytes"], down["bytes"], up["chunks"], down["chunks"], many["opened"], many["open"], many["refused"]
        )

    async def close(self) -> None:
        await self.proxy.destroy()

    async def _put(self, kind: str, direction: str, attributes: dict[str, Any], name: str | None = None) -> None:
        present = {toxic["name"] for toxic in await self.proxy.toxics()}
        for stream in STREAMS[direction]:
            label = f"{name or kind}_{stream}"
            if label in present:
                await self.proxy.update_toxic(label, **attributes)
            else:
                await self.proxy.add(kind, stream, name=label, **attributes)


class ProxyHost:
    """The links of one deployment, as proxies of one server; `let_go` is called when it is closed."""

    def __init__(
        self,
        server: Toxiproxy,
        hold: Hold,
        *,
        process: Process | None = None,
        relay: bool = False,
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self.process = process
        self._let_go = let_go
        self.server = server
        self._hold = hold
        self._relay = relay
        self._prefix = "" if process else f"holdfast-{uuid.uuid4().hex[:8]}-"
        self._opened: list[ProxiedLink] = []

    async def open(self, name: str, upstream_host: str, upstream_port: int, listen_port: int) -> ProxiedLink:
        ours = {"strict": True} if self._relay else {}
        upstream, listen = f"{upstream_host}:{upstream_port}", f"127.0.0.1:{listen_port}"
        proxy = await self.server.create(self._prefix + name, upstream, listen, **ours)
        link = ProxiedLink(proxy, self._hold, relay=self._relay)
        self._opened.append(link)
        return link

    async def trouble(self) -> str:
        try:
            await self.server.version()
        except ToxiproxyError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """A server of ours ends; on one of somebody else's our proxies go."""
        if self.process is None:
            for link in self._opened:
                with contextlib.suppress(UnreachableError):  # nothing of ours is left on a server that is gone
                    await link.close()
        else:
            await self.process.end(CLOSE_DEADLINE)
        await self.server.close()
        self._let_go()


def relay_links(seed: int) -> StartLinks:
    async def start(guardian: Guardian, ports: PortPool, name: str) -> ProxyHost:
        relay = await RelayServer.start(guardian, name, port := ports.take(), seed=seed)
        let_go = partial(ports.release, port)
        return ProxyHost(Toxiproxy(relay.url), BLACKHOLE, process=relay.process, relay=True, let_go=let_go)

    return start


def toxiproxy_links() -> StartLinks:
    """A real one: the one that TOXIPROXY_URL names, else one of our own for each deployment."""
    if url := os.environ.get("TOXIPROXY_URL"):
        return _joined_server(url)
    binary = find_toxiproxy()

    async def start(guardian: Guardian, ports: PortPool, name: str) -> ProxyHost:
        port = ports.take()
        arguments = [str(binary), "-host", "127.0.0.1", "-port", str(port)]
        process = await guardian.spawn(Command(argv=arguments), name=name)
        server = Toxiproxy(f"http://127.0.0.1:{port}")

        async def answers() -> bool:
            with contextlib.suppress(ToxiproxyError):  # not yet
                return bool(await server.version())
            return False

        await ready(process, answers, START_DEADLINE, what="its API")
        return ProxyHost(server, await hold_of(server), process=process, let_go=partial(ports.release, port))

    return start


def _joined_server(url: str) -> StartLinks:
    async def join(_guardian: Guardian, _ports: PortPool, _name: str) -> ProxyHost:
        server = Toxiproxy(url)
        return ProxyHost(server, await hold_of(server))

    return join


class JoinedLink(ProxiedLink):
    """A proxy of somebody else's: it stays when we go, without our toxics."""

    async def close(self) -> None:
        await self.heal()
        await self.proxy.server.close()


async def join_link(url: str, proxy: str) -> JoinedLink:
    """A proxy that stands already, in front of a part of the target."""
    server = Toxiproxy(url)
    return JoinedLink(await server.find(proxy), await hold_of(server), relay=False)


async def hold_of(server: Toxiproxy) -> Hold:
    """The stall of a Toxiproxy, which depends on its version; one that was built from source may not know its own.

    From 2.13 on a slicer of nothing is refused. On a proxy that nobody uses it does no harm.
    """
    probe = await server.create(f"holdfast-probe-{uuid.uuid4().hex[:8]}", "127.0.0.1:9", enabled=False)
    try:
        await probe.add("slicer", average_size=0)
    except ToxiproxyError as refusal:
        if refusal.status != 400:
            raise
        return DELAY_OF_A_DAY
    finally:
        await probe.destroy()
    return RATE_OF_NOTHING


def must_have_toxiproxy() -> None:
    """One sentence, before anything starts, if there is none or the one that TOXIPROXY_URL names does not answer."""
    if url := os.environ.get("TOXIPROXY_URL"):
        asyncio.run(_must_answer(url))
    else:
        find_toxiproxy()


async def _must_answer(url: str) -> None:
    server = Toxiproxy(url)
    try:
        await server.version()
    except ToxiproxyError as error:
        raise StartError(f"TOXIPROXY_URL: {error}") from error
    finally:
        await server.close()


def find_toxiproxy() -> Path:
    found = shutil.which("toxiproxy-server")
    if found:
        return Path(found)
    if (cached := CACHE.expanduser()).is_file():
        return cached
    raise StartError(
        "no toxiproxy-server is on PATH; `holdfast doctor --install toxiproxy` builds one where Go is, "
        "TOXIPROXY_URL names one that runs, or use --engine relay"
    )
