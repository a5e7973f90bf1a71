"""Links in a fault engine: our relay or a real Toxiproxy, with the same verbs on both.

Both speak the same API, and a link is a proxy in the engine; a verb adds toxics under names of its own, so that a
second call changes them and `heal` removes all. What the two engines do differently is here and nowhere else:

- stall: the relay has `blackhole`. A Toxiproxy has no toxic that holds everything and keeps connections; up to 2.12 a
  rate of 0 does it, from 2.13 on a delay longer than any run.
- refuse: both stop listening by disabling the proxy. The relay resets the open connections before that, a Toxiproxy
  closes them cleanly.
- cut and reset: a Toxiproxy resets only connections that were opened under the toxic, so its `cut` closes open ones
  cleanly and resets new ones, and its `reset` is a clean close.
- counters: only the relay counts connections that are still open.
- UDP: only the relay carries it. So UDP links always live in a relay of their own (`udp_links`), in plain runs, with
  either engine, and their verbs are those of `DatagramLink`.

Who owns the server: one that we start (our relay, or a toxiproxy-server per deployment) is a process of the guardian
and ends with its `ProxyHost`. One that TOXIPROXY_URL names is shared with others, so our proxies have a prefix of their
own and are deleted one by one. A proxy that `[links]` names (`JoinedLink`) belongs to the target's operator: it stays,
and only our toxics go.
"""

import asyncio
import contextlib
import os
import shutil
import uuid
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.chaos.proxied import BLACKHOLE, DELAY_OF_A_DAY, RATE_OF_NOTHING, DatagramLink, Hold, ProxiedLink
from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.toxiproxy import Toxiproxy, ToxiproxyError, UnreachableError
from holdfast.fixtures.launcher import Command, Guardian, Process, ready
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.run_resources import StartLinks
from holdfast.target.deployment import StartError

START_DEADLINE = 10.0
CLOSE_DEADLINE = 2.0
# Where `holdfast doctor --install toxiproxy` puts the binary.
CACHE = Path("~/.cache/holdfast/bin/toxiproxy-server")


class ProxyHost:
    """The links of one deployment, as proxies of one server; `let_go` is called once it is closed.

    `process` is the server if we have started it, None for one that others use too.
    """

    def __init__(
        self,
        server: Toxiproxy,
        hold: Hold,
        *,
        process: Process | None = None,
        relay: bool = False,
        udp: bool = False,
        let_go: Callable[[], None] = lambda: None,
    ) -> None:
        self.process = process
        self._udp = udp
        self._let_go = let_go
        self.server = server
        self._hold = hold
        self._relay = relay
        self._prefix = "" if process else f"holdfast-{uuid.uuid4().hex[:8]}-"
        self._opened: list[ProxiedLink] = []

    async def open(self, name: str, upstream_host: str, upstream_port: int, listen_port: int) -> ProxiedLink:
        ours: dict[str, Any] = {"strict": True} if self._relay else {}
        if self._udp:
            ours = {"protocol": "udp"}
        upstream, listen = f"{upstream_host}:{upstream_port}", f"127.0.0.1:{listen_port}"
        proxy = await self.server.create(self._prefix + name, upstream, listen, **ours)
        kind = DatagramLink if self._udp else ProxiedLink
        link = kind(proxy, self._hold, relay=self._relay)
        self._opened.append(link)
        return link

    async def trouble(self) -> str:
        try:
            await self.server.version()
        except ToxiproxyError as error:
            return str(error)
        return ""

    async def close(self) -> None:
        """End the server if we have started it; else delete our proxies there."""
        if self.process is None:
            for link in self._opened:
                with contextlib.suppress(UnreachableError):  # a server that is gone has no proxies left
                    await link.close()
        else:
            await self.process.end(CLOSE_DEADLINE)
        await self.server.close()
        self._let_go()


def relay_links(seed: int, *, udp: bool = False) -> StartLinks:
    async def start(guardian: Guardian, ports: PortPool, name: str) -> ProxyHost:
        relay = await RelayServer.start(guardian, name, port := ports.take(), seed=seed)
        let_go = partial(ports.release, port)
        server = Toxiproxy(relay.url)
        return ProxyHost(server, BLACKHOLE, process=relay.process, relay=True, udp=udp, let_go=let_go)

    return start


def udp_links(seed: int) -> StartLinks:
    """Serve UDP links in a relay of their own, whatever serves the TCP links of the deployment."""
    return relay_links(seed, udp=True)


def toxiproxy_links() -> StartLinks:
    """Use a real Toxiproxy: the one that TOXIPROXY_URL names, else one started for each deployment."""
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
    """A proxy that the target's operator runs: closing the link removes our toxics and leaves the proxy."""

    async def close(self) -> None:
        await self.heal()
        await self.proxy.server.close()


class JoinedDatagramLink(JoinedLink, DatagramLink):
    """A UDP proxy of the operator's; their Toxiproxy is a `holdfast relay` then, since no other carries UDP."""


async def join_link(url: str, proxy: str) -> JoinedLink:
    """Use a proxy that exists already, of a Toxiproxy or relay that the target's operator runs."""
    server = Toxiproxy(url)
    found = await server.find(proxy)
    if found.fields.get("protocol") == "udp":
        return JoinedDatagramLink(found, BLACKHOLE, relay=True)
    return JoinedLink(found, await hold_of(server), relay=False)


async def hold_of(server: Toxiproxy) -> Hold:
    """Find out how this Toxiproxy stalls, which depends on its version; one built from source may not report it.

    So a slicer with size 0 is tried, which 2.13 and later refuse, on a disabled proxy, where it does no harm.
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
    """Raise StartError, before anything starts, if there is no Toxiproxy or TOXIPROXY_URL does not answer."""
    if url := os.environ.get("TOXIPROXY_URL"):
        asyncio.run(_must_answer(url))
    else:
        find_toxiproxy()


async def _must_answer(url: str) -> None:
    server = Toxiproxy(url)
    try:
        await server.version()
    except ToxiproxyError as error:
        raise StartError(f"TOXIPROXY_URL: {error}; start that Toxiproxy, or unset the variable") from error
    finally:
        await server.close()


def find_toxiproxy() -> Path:
    found = shutil.which("toxiproxy-server")
    if found:
        return Path(found)
    if (cached := CACHE.expanduser()).is_file():
        return cached
    raise StartError(
        "no toxiproxy-server is on PATH: build one with `holdfast doctor --install toxiproxy` (needs Go), "
        "name a running one in TOXIPROXY_URL, or use --engine relay"
    )
