"""A link that is a proxy of a fault engine, with the verbs of a link on the API of Toxiproxy.

A verb adds toxics under names of its own, so that a second call changes them and `heal` removes all. Where the engines
differ is said in `chaos.engines`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.chaos.toxiproxy import Fields, Proxy
from holdfast.check.finding import NotObservable
from holdfast.target.deployment import LinkCounters

STREAMS = {"up": ("upstream",), "down": ("downstream",), "both": ("upstream", "downstream")}
MILLISECONDS = 1000
A_DAY = 86_400 * MILLISECONDS


@dataclass(frozen=True)
class Hold:
    """How a server holds everything without losing a connection: a toxic and its attributes."""

    toxic: str
    attributes: Mapping[str, int]


BLACKHOLE = Hold("blackhole", {})
RATE_OF_NOTHING = Hold("bandwidth", {"rate": 0})
DELAY_OF_A_DAY = Hold("latency", {"latency": A_DAY})


class ProxiedLink:
    """A link that is a proxy of an engine. Every verb is in force when it returns."""

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
        """Let at most `kilobytes` thousand bytes per second through."""
        await self._put("bandwidth", direction, {"rate": kilobytes})

    async def refuse(self) -> None:
        if self._relay:
            await self.proxy.reset()
        await self.proxy.disable()

    async def cut(self) -> None:
        """Break open connections and every new one, until `heal`."""
        if self._relay:
            await self._put("reset_peer", "both", {"timeout": 0})
            await self.proxy.reset()
        else:
            await self.proxy.disable()
            await self._put("reset_peer", "both", {"timeout": 0})
            await self.proxy.enable()

    async def reset(self) -> None:
        """Break the open connections, once."""
        if self._relay:
            await self.proxy.reset()
        else:
            await self.proxy.disable()
            await self.proxy.enable()

    async def lead_to(self, host: str, port: int) -> None:
        """Connect new connections to this upstream; open ones break."""
        await self.proxy.update(upstream=f"{host}:{port}")

    async def heal(self) -> None:
        await self.proxy.heal()

    async def counters(self) -> LinkCounters:
        if not self._relay:
            raise NotObservable("[[node]] start with {redis}, and --engine relay")
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


class DatagramLink(ProxiedLink):
    """A UDP link, which only our relay serves. `stall` loses what it holds up: a black hole, also one-way."""

    async def spoil(self, kind: str, share: float, direction: str = "both") -> None:
        """Let `loss`, `duplicate`, `reorder` or `corrupt` strike this share of the datagrams."""
        toxic, attribute = SPOILS[kind]
        await self._put(toxic, direction, {attribute: share})

    async def rebind(self) -> int:
        """Go on from new source ports towards the upstream; return how many flows that were."""
        return await self.proxy.rebind()

    async def clear(self) -> bool:
        """Return whether no fault is on the link."""
        return not await self.proxy.toxics()

    async def tally(self) -> Fields:
        """Return the relay's counters of flows and of datagrams in each direction."""
        return await self.proxy.counters()


# The toxic of the relay for each kind of fault on a share of the datagrams, and the attribute that holds the share.
SPOILS = {
    "loss": ("packet_loss", "loss_rate"),
    "duplicate": ("duplicate", "rate"),
    "reorder": ("reorder", "rate"),
    "corrupt": ("corrupt", "rate"),
}
