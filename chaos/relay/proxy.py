"""A proxy as the API shows it, on the transport of its protocol.

A proxy owns its name, its toxics and whether it is enabled; the transport (TCP or UDP) owns sockets and connections.
Both look at the same list of toxics: the proxy changes the list first and tells the transport after that. The transport
changes the connections that are open; one that is still being joined finds the new list when it begins.

`enabled` means that the transport listens. `listen` is what was asked for until the first start, and the real address
from then on, so that a disabled proxy comes back on the same port. A change of `listen` or `upstream` ends all
connections; a change of `strict` or of toxics does not.

Errors: `ApiError` carries the status and the text that clients of Toxiproxy look for, `BodyError` a field that can't be
read. An address that can't be listened on is a 500, as in Toxiproxy.
"""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from holdfast.chaos.relay.address import Address, AddressError, resolve
from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.gojson import BodyError, Fields, write
from holdfast.chaos.relay.tcp import TcpTransport
from holdfast.chaos.relay.toxic import DOWNSTREAM, UPSTREAM, ApiError, Toxic, read_toxic
from holdfast.chaos.relay.udp import IDLE, UdpTransport

PROTOCOLS = ("tcp", "udp")


class Transport(Protocol):
    upstream: str
    strict: bool

    def open(self, address: Address) -> Address:
        """Listen there; return the real address, with the port that the system chose for port 0."""

    async def stop(self) -> None:
        """Stop listening, and close what is open."""

    def add(self, toxic: Toxic) -> None: ...

    def update(self, toxic: Toxic) -> None: ...

    def remove(self, toxic: Toxic) -> None: ...

    async def reset(self) -> int:
        """Reset what is open; return how many connections that were."""

    def rebind(self) -> int:
        """Give each UDP flow a new source port; return how many flows that were."""

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
        """Read the fields of a request; `where` says in an error which of many entries it is."""
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
    """Answer 500 when the address can't be listened on; removing a `refuse` can fail too, if the port was taken."""
    try:
        yield
    except AddressError as error:
        raise ApiError(500, str(error)) from error


class Proxy:
    def __init__(self, wanted: Wanted, seed: int, effects: Effects, udp_idle: float = IDLE) -> None:
        self.name = wanted.name
        self.listen = wanted.listen
        self.protocol = wanted.protocol
        self.enabled = False
        self.toxics: list[Toxic] = []
        for fields in wanted.toxics:
            self.toxics.append(self._read(fields))
        common = (wanted.upstream, self.toxics, effects, f"{seed} {wanted.name}")
        udp = wanted.protocol == "udp"
        self.transport: Transport = UdpTransport(*common, udp_idle) if udp else TcpTransport(*common)
        self.transport.strict = wanted.strict

    @property
    def upstream(self) -> str:
        return self.transport.upstream

    async def start(self) -> None:
        if self.enabled:
            return
        with _listening():
            self.listen = str(self.transport.open(await resolve(self.listen, self.protocol)))
        self.enabled = True

    async def stop(self) -> None:
        if self.enabled:
            self.enabled = False
            await self.transport.stop()

    async def change(self, fields: Fields) -> None:
        """Apply the fields that are given; the others keep their values."""
        listen, upstream = fields.text("listen", self.listen), fields.text("upstream", self.upstream)
        enabled = fields.flag("enabled", default=self.enabled)
        strict = fields.flag("strict", default=self.transport.strict)
        if await self.differs(listen, upstream):
            await self.stop()
            self.listen, self.transport.upstream = listen, upstream
        self.transport.strict = strict
        await (self.start() if enabled else self.stop())

    async def differs(self, listen: str, upstream: str) -> bool:
        """Return whether these addresses, once resolved, are others than the proxy's own."""
        with _listening():
            resolved = str(await resolve(listen, self.protocol))
        return resolved != self.listen or upstream != self.upstream

    def add(self, fields: Fields) -> Toxic:
        toxic = self._read(fields)
        self.toxics.append(toxic)
        with _listening():
            self.transport.add(toxic)
        return toxic

    def update(self, name: str, fields: Fields) -> Toxic:
        toxic = self.toxic(name)
        toxic.change(fields, self.protocol)
        with _listening():
            self.transport.update(toxic)
        return toxic

    def remove(self, toxic: Toxic) -> None:
        self.toxics.remove(toxic)
        with _listening():
            self.transport.remove(toxic)

    def rebind(self) -> int:
        if self.protocol != "udp":
            raise ApiError(400, "only a UDP proxy can be rebound")
        return self.transport.rebind()

    def toxic(self, name: str) -> Toxic:
        for toxic in self.toxics:
            if toxic.name == name:
                return toxic
        raise ApiError(404, "toxic not found")

    def toxics_json(self) -> str:
        ordered = [toxic for stream in (UPSTREAM, DOWNSTREAM) for toxic in self.toxics if toxic.direction == stream]
        return f"[{','.join(toxic.json() for toxic in ordered)}]"

    def json(self) -> str:
        """Show the proxy; fields that Toxiproxy does not have are shown only where they were asked for."""
        extra = ',"protocol":"udp"' if self.protocol == "udp" else ""
        extra += ',"strict":true' if self.transport.strict else ""
        return (
            f'{{"name":{write(self.name)},"listen":{write(self.listen)},"upstream":{write(self.upstream)},'
            f'"enabled":{write(self.enabled)},"Logger":{{}},"toxics":{self.toxics_json()}{extra}}}'
        )

    def _read(self, fields: Fields) -> Toxic:
        return read_toxic(fields, self.protocol, {toxic.name for toxic in self.toxics})
