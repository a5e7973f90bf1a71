"""Addresses as `host:port`; errors of those that can't be listened on are worded as Go words them."""

import asyncio
import errno
import ipaddress
import socket
from dataclasses import dataclass

ALL_INTERFACES = ("", "0.0.0.0", "::")  # noqa: S104 - the user chooses it
KIND = {"tcp": socket.SOCK_STREAM, "udp": socket.SOCK_DGRAM}
SAID = {
    errno.EADDRINUSE: "address already in use",
    errno.EADDRNOTAVAIL: "cannot assign requested address",
    errno.EACCES: "permission denied",
}


class AddressError(Exception):
    """An address that can't be read, or that the system refuses to bind."""


@dataclass(frozen=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def everywhere(self) -> bool:
        return self.host in ALL_INTERFACES


def split(text: str) -> tuple[str, str]:
    """Split `host:port` or `[host]:port` into host and port."""
    host, colon, port = text.rpartition(":")
    if not colon or (host.startswith("[") and not host.endswith("]")):
        raise AddressError(f"address {text}: missing port in address")
    if host.startswith("["):
        return host[1:-1], port
    if ":" in host:
        raise AddressError(f"address {text}: too many colons in address")
    return host, port


async def resolve(text: str, network: str = "tcp") -> Address:
    """Read where to listen: an empty text means all interfaces and any port; names are looked up, IPv4 first."""
    try:
        host, service = split(text) if text else ("", "0")
        return Address(await _look_up(host), _port_of(service, network))
    except AddressError as error:
        raise AddressError(f"listen {network}: {error}") from error


def _port_of(service: str, network: str) -> int:
    if service.isascii() and service.isdecimal():
        if int(service) > 65535:
            raise AddressError(f"address {service}: invalid port")
        return int(service)
    if not service:
        return 0
    if service[0] in "+-":
        raise AddressError(f"address {service}: invalid port")
    try:
        return socket.getservbyname(service, network)
    except OSError:
        raise AddressError(f"lookup {network}/{service}: unknown port") from None


async def _look_up(host: str) -> str:
    if host in ALL_INTERFACES:
        return "::" if socket.has_dualstack_ipv6() else "0.0.0.0"  # noqa: S104 - the user asked for it
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        pass
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise AddressError(f"lookup {host}: no such host") from None
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return str(found[0][4][0])


def bind(address: Address, network: str) -> socket.socket:
    """Return a non-blocking socket bound to the address; a TCP one does not listen yet."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    sock = socket.socket(family, KIND[network])
    try:
        sock.setblocking(False)
        if network == "tcp":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not address.everywhere))
        sock.bind((address.host, address.port))
    except OSError as error:
        sock.close()
        raise refused(address, network, error) from error
    return sock


def refused(address: Address, network: str, error: OSError) -> AddressError:
    said = SAID.get(error.errno or 0, error.strerror or str(error))
    return AddressError(f"listen {network} {address}: bind: {said}")


def bound(sock: socket.socket) -> Address:
    host, port = sock.getsockname()[:2]
    return Address(host, port)
