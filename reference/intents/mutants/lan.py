"""Violations of the LAN guard (section 6)."""

from collections.abc import Iterator, Sequence
from ipaddress import ip_address

from holdfast.reference.intents.acceptance import Acceptance, Stage
from holdfast.reference.intents.languard import Address, Headers, LanGuard, address_of
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import networks


@violates("IN-LAN-01", 1, "The header is ignored and the loopback peer always counts as LAN.")
class OnlyThePeer(LanGuard):
    def client_ip(self, peer: str, headers: Headers) -> Address | None:  # noqa: ARG002  # that is the violation
        return address_of(peer)


@violates("IN-LAN-01", 2, "Every request that carries X-Forwarded-For is refused.")
class NoProxies(LanGuard):
    def check(self, peer: str, headers: Headers) -> None:
        if "X-Forwarded-For" in headers:
            raise Refusal("FORBIDDEN")
        super().check(peer, headers)


@violates("IN-LAN-01", 3, "The guard runs after the record was stored.")
class GuardLast(Acceptance):
    def stages(self) -> Sequence[Stage]:
        return [*(stage for stage in super().stages() if stage != self.guard), self.guard]


@violates("IN-LAN-02", 1, "The header is believed from any peer.")
class AnyPeer(LanGuard):
    def client_ip(self, peer: str, headers: Headers) -> Address | None:
        named = [address_of(entry) for entry in self.from_the_right(self.chain(headers))]
        others = [each for each in named if each is not None and not self.trusted(each)]
        return others[0] if others else super().client_ip(peer, headers)


@violates("IN-LAN-02", 2, "The leftmost entry is taken as the client.")
class Leftmost(LanGuard):
    def from_the_right(self, chain: Sequence[str]) -> Iterator[str]:
        return iter(chain)


@violates("IN-LAN-02", 3, "Only the first header line is read.")
class FirstLine(LanGuard):
    def chain(self, headers: Headers) -> Sequence[str]:
        return headers["X-Forwarded-For"].split(",") if "X-Forwarded-For" in headers else []


@violates("IN-LAN-02", 4, "Unparsable entries are skipped and the entry to their left is used.")
class SkipsUnparsable(LanGuard):
    def from_the_right(self, chain: Sequence[str]) -> Iterator[str]:
        return (entry for entry in reversed(chain) if address_of(entry) is not None)


@violates("IN-LAN-02", 5, "Trusted proxies inside the chain are not skipped and count as the client.")
class LastEntry(LanGuard):
    def client_ip(self, peer: str, headers: Headers) -> Address | None:
        chain, socket = self.chain(headers), address_of(peer)
        last = address_of(chain[-1]) if chain and socket is not None and self.trusted(socket) else None
        return last or super().client_ip(peer, headers)


@violates("IN-LAN-03", 1, "IPv4-mapped addresses are compared as text and taken for LAN.")
class MappedIsLan(LanGuard):
    def check(self, peer: str, headers: Headers) -> None:
        if not any(entry.strip().startswith("::ffff:") for entry in self.chain(headers)):
            super().check(peer, headers)


@violates("IN-LAN-03", 2, "An unusual entry raises an error: 500.")
class Strict(LanGuard):
    def chain(self, headers: Headers) -> Sequence[str]:
        return [str(ip_address(entry.strip())) for entry in super().chain(headers)]


@violates("IN-LAN-03", 3, "If all entries are trusted the leftmost proxy is judged as client.")
class LeftmostProxy(LanGuard):
    def client_ip(self, peer: str, headers: Headers) -> Address | None:
        named = [address_of(entry) for entry in self.chain(headers)]
        trusted = [each for each in named if each is not None and self.trusted(each)]
        return trusted[0] if trusted and len(trusted) == len(named) else super().client_ip(peer, headers)


@violates("IN-LAN-03", 4, "X-Real-IP is preferred to X-Forwarded-For.")
class RealIp(LanGuard):
    def chain(self, headers: Headers) -> Sequence[str]:
        return [headers["X-Real-IP"]] if "X-Real-IP" in headers else super().chain(headers)


violation(
    "IN-LAN-03",
    5,
    "172.0.0.0/8 or 192.0.0.0/8 is allowed.",
    lambda s: {"lan_allowed": (*s.lan_allowed, *networks("172.0.0.0/8,192.0.0.0/8"))},
)
