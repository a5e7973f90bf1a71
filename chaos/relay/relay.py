"""All proxies of a relay: create, find, populate, reset.

The relay owns its proxies by name; a proxy owns its toxics and its transport. The API makes one change at a time (it
holds a lock around each), so nothing here guards against another change in the middle of one.

An enabled proxy is listed only once it listens, so a create that fails leaves nothing. `populate` reads all entries
before it makes the first, so that one that can't be read changes nothing; initial toxics are read when their proxy is
made. An entry whose proxy exists at the same addresses keeps that proxy with its connections; at other addresses the
old one is stopped and replaced. If making one fails, those made before it remain and are listed in the answer, as in
Toxiproxy.

`seed` is mixed with the name of each proxy and the number of each connection, so that the draws of one connection do
not depend on how many others there are.
"""

from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.gojson import BodyError, Fields
from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.toxic import ApiError, bad_body
from holdfast.chaos.relay.udp import IDLE


class PopulateError(ApiError):
    """Populating failed; `made` are the proxies made before, None when nothing was tried."""

    def __init__(self, cause: ApiError, made: list[Proxy] | None) -> None:
        super().__init__(cause.status, cause.text)
        self.made = made


class Relay:
    def __init__(self, *, seed: int = 0, effects: Effects | None = None, udp_idle: float = IDLE) -> None:
        self.proxies: dict[str, Proxy] = {}
        self._seed = seed
        self._effects = effects or Effects()
        self._udp_idle = udp_idle

    def find(self, name: str) -> Proxy:
        if name not in self.proxies:
            raise ApiError(404, "proxy not found")
        return self.proxies[name]

    async def create(self, wanted: Wanted) -> Proxy:
        if wanted.name in self.proxies:
            raise ApiError(409, "proxy already exists")
        return await self._make(wanted)

    async def delete(self, name: str) -> None:
        proxy = self.find(name)
        await proxy.stop()
        del self.proxies[name]

    async def populate(self, entries: list[Fields]) -> list[Proxy]:
        """Make the proxies of all entries; return them, with those that were kept."""
        try:
            wishes = [Wanted.read(fields, f" at proxy {number}") for number, fields in enumerate(entries, 1)]
        except ApiError as error:
            raise PopulateError(error, None) from error
        except BodyError as error:
            raise PopulateError(bad_body(error), None) from error
        made: list[Proxy] = []
        for wanted in wishes:
            try:
                made.append(await self._kept(wanted) or await self._make(wanted))
            except ApiError as error:
                raise PopulateError(error, made) from error
            except BodyError as error:  # of an initial toxic
                raise PopulateError(bad_body(error), made) from error
        return made

    async def _kept(self, wanted: Wanted) -> Proxy | None:
        proxy = self.proxies.get(wanted.name)
        if proxy is None:
            return None
        same = proxy.protocol == wanted.protocol and not await proxy.differs(wanted.listen, wanted.upstream)
        if not same:
            await proxy.stop()
        return proxy if same else None

    async def _make(self, wanted: Wanted) -> Proxy:
        proxy = Proxy(wanted, self._seed, self._effects, self._udp_idle)
        if wanted.enabled:
            await proxy.start()
        self.proxies[wanted.name] = proxy
        return proxy

    async def reset(self) -> None:
        """Enable every proxy and remove every toxic."""
        for proxy in self.proxies.values():
            await proxy.start()
            for toxic in list(proxy.toxics):
                proxy.remove(toxic)

    async def close(self) -> None:
        for proxy in self.proxies.values():
            await proxy.stop()
