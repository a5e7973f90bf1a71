"""All proxies of a relay: create, find, populate, reset."""

from holdfast.chaos.relay.faults import Faults
from holdfast.chaos.relay.gojson import BodyError, Fields
from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.toxic import ApiError, bad_body
from holdfast.chaos.relay.udp import IDLE


class PopulateError(ApiError):
    """Some were made before this happened, or none (None) when nothing was tried."""

    def __init__(self, cause: ApiError, made: list[Proxy] | None) -> None:
        super().__init__(cause.status, cause.text)
        self.made = made


class Relay:
    def __init__(self, *, seed: int = 0, faults: Faults | None = None, udp_idle: float = IDLE) -> None:
        self.proxies: dict[str, Proxy] = {}
        self._seed = seed
        self._faults = faults or Faults()
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
        """All are looked at before the first is made; what is there already, at the same addresses, stays as it is."""
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
        proxy = Proxy(wanted, self._seed, self._faults, self._udp_idle)
        if wanted.enabled:
            await proxy.start()
        self.proxies[wanted.name] = proxy
        return proxy

    async def reset(self) -> None:
        """Every proxy enabled, every toxic gone."""
        for proxy in self.proxies.values():
            await proxy.start()
            for toxic in list(proxy.toxics):
                proxy.remove(toxic)

    async def close(self) -> None:
        for proxy in self.proxies.values():
            await proxy.stop()
