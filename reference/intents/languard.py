"""The LAN guard (section 6): whose address counts, and whether it is inside the allowed networks.

`X-Forwarded-For` counts only if the socket's peer is a trusted proxy. The chain is read from the right past trusted
proxies; the first other address is the client. Nothing left of that, or of an entry that is no address, is believed.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address

from multidict import CIMultiDict, CIMultiDictProxy

from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import Network, Settings

Address = IPv4Address | IPv6Address
Headers = CIMultiDict[str] | CIMultiDictProxy[str]
_WITH_PORT = re.compile(r"\[(?P<six>[^\]]*)\](?::\d{1,5})?|(?P<four>\d+\.\d+\.\d+\.\d+):\d{1,5}")


@functools.lru_cache(
    maxsize=4096
)  # most requests come from few addresses, and reading one takes longer than finding it
def address_of(text: str) -> Address | None:
    """Returns the address that a text names, with or without a port; None if it names none."""
    text = text.strip()
    if (found := _WITH_PORT.fullmatch(text)) is not None:
        text = found["six"] or found["four"] or ""
    try:
        return plain(ip_address(text))
    except ValueError:
        return None


def plain(address: Address) -> Address:
    """Returns an IPv4-mapped address as the IPv4 address that it is."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address


class LanGuard:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def check(self, peer: str, headers: Headers) -> None:
        """Raises Refusal with 403 for a client outside the allowed networks."""
        if self.settings.lan_guard and not self.lan_allowed(self.client_ip(peer, headers)):
            raise Refusal("FORBIDDEN", "This service is for the local network only.")

    def client_ip(self, peer: str, headers: Headers) -> Address | None:
        """Returns the client's address; None if even the peer has none that can be read."""
        socket = address_of(peer)
        if socket is None or not self.trusted(socket):
            return socket
        for entry in self.from_the_right(self.chain(headers)):
            if (address := address_of(entry)) is None:
                return socket
            if not self.trusted(address):
                return address
        return socket

    def chain(self, headers: Headers) -> Sequence[str]:
        """Returns the entries of all lines of the header as one chain."""
        text = ",".join(headers.getall("X-Forwarded-For", []))
        return text.split(",") if text.strip() else []

    def from_the_right(self, chain: Sequence[str]) -> Iterator[str]:
        return reversed(chain)

    def trusted(self, address: Address) -> bool:
        return inside(address, self.settings.trusted_proxies)

    def lan_allowed(self, address: Address | None) -> bool:
        return address is not None and inside(address, self.settings.lan_allowed)


def inside(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)
