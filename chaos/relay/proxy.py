"""A proxy as the API shows it, on the engine of its protocol."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.chaos.relay.address import Address, AddressError, resolve
from holdfast.chaos.relay.faults import Faults
from holdfast.chaos.relay.gojson import BodyError, Fields, write
from holdfast.chaos.relay.tcp import TcpRelay
from holdfast.chaos.relay.toxic import DOWNSTREAM, UPSTREAM, ApiError, Toxic, read_toxic
from holdfast.chaos.relay.udp import IDLE, UdpRelay

PROTOCOLS = ("tcp", "udp")


class Engine(Protocol):
    upstream: str
    strict: bool

    def open(self, address: Address) -> Address:
        """Listen there, and say where that really is."""

    async def stop(self) -> None:
        """Listen no more, and close what is open."""

    def add(self, toxic: Toxic) -> None: ...

    def update(self, toxic: Toxic) -> None: ...

    def remove(self, toxic: Toxic) -> None: ...

    async def reset(self) -> int: ...

    def rebind(self) -> int: ...

    def tally(self) -> dict[str, dict[str, int]]: ...


@dataclass(frozen=True)
class Wanted:
    """What a request asks of a new proxy."""

    name: str
    upstream: str
    listen: str = ""
    enabled: bool = True
    strict: bool = False
    protocol: str = "tcp"
    toxics: list[Fields] = field(default_factory=list)

    @classmethod
    def read(cls, fields: Fields, where: str = "") -> "Wanted":
        """`where` tells which of many it is."""
        wanted = cls(
            name=fields.text("name"),
            upstream=fields.text("upstream"),
            listen=fields.text("listen"),
            enabled=fields.flag("enabled", default=True),
            strict=fields.flag("strict"),
            protocol=fields.text("protocol", "tcp"),
            toxics=fields.objects("initial_toxics"),
        )
        for required in ("name", "upstream"):
            if not getattr(wanted, required):
                raise ApiError(400, f"missing required field: {required}{where}")
        if wanted.protocol not in PROTOCOLS:
            raise BodyError(f"protocol {wanted.protocol}: it is one of {', '.join(PROTOCOLS)}")
        return wanted


@contextlib.contextmanager
def _listening() -> Iterator[None]:
    """An address that is not to be had; after a refusal, somebody else may have taken it."""
    try:
        yield
    except AddressError as error:
        raise ApiError(500, str(error)) from error


class Proxy:
    def __init__(self, wanted: Wanted, seed: int, faults: Faults, udp_idle: float = IDLE) -> None:
        self.name = wanted.name
        self.listen = wanted.listen
        self.protocol = wanted.protocol
        self.enabled = False
        self.toxics: list[Toxic] = []
        for fields in wanted.toxics:
            self.toxics.append(self._read(fields))
        told = (wanted.upstream, self.toxics, faults, f"{seed} {wanted.name}")
        self.engine: Engine = UdpRelay(*told, udp_idle) if wanted.protocol == "udp" else TcpRelay(*told)
        self.engine.strict = wanted.strict

    @property
    def upstream(self) -> str:
        return self.engine.upstream

    async def start(self) -> None:
        if self.enabled:
            return
        with _listening():
            self.listen = str(self.engine.open(await resolve(self.listen, self.protocol)))
        self.enabled = True

    async def stop(self) -> None:
        if self.enabled:
            self.enabled = False
            await self.engine.stop()

    async def change(self, fields: Fields) -> None:
        listen, upstream = fields.text("listen", self.listen), fields.text("upstream", self.upstream)
        enabled = fields.flag("enabled", default=self.enabled)
        strict = fields.flag("strict", default=self.engine.strict)
        if await self.differs(listen, upstream):
            await self.stop()
            self.listen, self.engine.upstream = listen, upstream
        self.engine.strict = strict
        await (self.start() if enabled else self.stop())

    async def differs(self, listen: str, upstream: str) -> bool:
        with _listening():
            resolved = str(await resolve(listen, self.protocol))
        return resolved != self.listen or upstream != self.upstream

    def add(self, fields: Fields) -> Toxic:
        toxic = self._read(fields)
        self.toxics.append(toxic)
        with _listening():
            self.engine.add(toxic)
        return toxic

    def update(self, name: str, fields: Fields) -> Toxic:
        toxic = self.toxic(name)
        toxic.change(fields, self.protocol)
        with _listening():
            self.engine.update(toxic)
        return toxic

    def remove(self, toxic: Toxic) -> None:
        self.toxics.remove(toxic)
        with _listening():
            self.engine.remove(toxic)

    def rebind(self) -> int:
        if self.protocol != "udp":
            raise ApiError(400, "only a UDP proxy can be rebound")
        return self.engine.rebind()

    def toxic(self, name: str) -> Toxic:
        for toxic in self.toxics:
            if toxic.name == name:
                return toxic
        raise ApiError(404, "toxic not found")

    def toxics_json(self) -> str:
        ordered = [toxic for stream in (UPSTREAM, DOWNSTREAM) for toxic in self.toxics if toxic.direction == stream]
        return f"[{','.join(toxic.json() for toxic in ordered)}]"

    def json(self) -> str:
        """What Toxiproxy does not have is shown only where it was asked for."""
        extra = ',"protocol":"udp"' if self.protocol == "udp" else ""
        extra += ',"strict":true' if self.engine.strict else ""
        return (
            f'{{"name":{write(self.name)},"listen":{write(self.listen)},"upstream":{write(self.upstream)},'
            f'"enabled":{write(self.enabled)},"Logger":{{}},"toxics":{self.toxics_json()}{extra}}}'
        )

    def _read(self, fields: Fields) -> Toxic:
        return read_toxic(fields, self.protocol, {toxic.name for toxic in self.toxics})
