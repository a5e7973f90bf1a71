"""Bundles for lockd nodes and their callers: an authority, servers, TC and SDK clients, and deliberately wrong ones.

`make_bundles` is what a target descriptor names under `[files]`: the launcher calls it with an empty folder before the
first node starts, and again with all names when a further node joins; nodes and suite read the same files. So what is
there stays as it is, and only what is missing is made, signed by the authority of the folder.
The suite itself issues further certificates with `identities`, from the CA file, as it would for any other target.

The PEM layout is the one that the public implementation loads: authority first, then leaf and key, then, for servers,
the two blocks of its storage encryption. A file holds nothing but blocks, not even a blank line at its end.
"""

import os
import time
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from cryptography import x509

from holdfast.check.x509 import BOTH, CLIENT_AUTH, SERVER_AUTH, Leaf, uris_of, write_private
from holdfast.conformance.lockd.storage_key import StorageAuthority, block

EVERY_NAMESPACE = "lockd://ns/ALL?perm=rw"
DEFAULT_NAMESPACE = "lockd://ns/default?perm=rw"
LOOPBACK = ("127.0.0.1", "localhost")
CA, CA_CERTIFICATE, TC_CLIENT, SDK_CLIENT = "ca.pem", "ca-cert.pem", "tc-client.pem", "client.pem"


def new_node_id() -> str:
    """Returns a UUID of version 7: milliseconds first, so that ids sort by age."""
    raw = bytearray((time.time_ns() // 1_000_000).to_bytes(6) + os.urandom(10))
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(raw)))


def server(node_id: str, hosts: Sequence[str] = LOOPBACK) -> Leaf:
    uris = (f"spiffe://lockd/server/{node_id}", EVERY_NAMESPACE)
    return Leaf("lockd-server", uris, BOTH, tuple(hosts))


def tc_client(name: str) -> Leaf:
    return Leaf(name, (f"spiffe://lockd/tc/{name}", EVERY_NAMESPACE), (CLIENT_AUTH,))


def sdk_client(name: str, claims: Sequence[str] = (DEFAULT_NAMESPACE,)) -> Leaf:
    return Leaf(name, (f"spiffe://lockd/sdk/{name}", *claims), (CLIENT_AUTH,))


class Authority(StorageAuthority):
    """A CA which signs leaves and puts bundles together."""

    @classmethod
    def new(cls, name: str = "holdfast-ca", key: Any = None) -> Self:
        return super().new(name, key)

    def client_bundle(self, leaf: Leaf) -> bytes:
        issued = self.issue(leaf)
        return (self.pem + issued.pem + issued.key_pem).encode()

    def server_bundle(self, leaf: Leaf, denied: Iterable[int] = ()) -> bytes:
        serials = "".join(f"{serial:x}\n" for serial in denied)
        denylist = block("LOCKD DENYLIST", {}, serials.encode()) if serials else ""
        return self.client_bundle(leaf) + (denylist + self.storage).encode()

    def bundle(self) -> bytes:
        return (self.pem + self.key_pem + self.storage).encode()


class Wrong:
    """One certificate of each kind that a node must refuse, issued by the right authority or by a foreign one."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def no_uri(self) -> bytes:
        return self._authority.client_bundle(server("", ()).changed(uris=(), hosts=LOOPBACK))

    def client_path(self, role: str) -> bytes:
        """Returns a bundle with both usages and the SPIFFE path of a client (`tc` or `sdk`)."""
        return self._authority.client_bundle(server("").changed(uris=(f"spiffe://lockd/{role}/x", EVERY_NAMESPACE)))

    def server_usage_only(self) -> bytes:
        return self._authority.client_bundle(server(new_node_id()).changed(usages=(SERVER_AUTH,)))

    def no_usage(self) -> bytes:
        return self._authority.client_bundle(server(new_node_id()).changed(usages=()))

    def expired(self) -> bytes:
        return self._authority.client_bundle(server(new_node_id()).expired())

    def foreign(self, node_id: str = "") -> bytes:
        """Returns a bundle with correct content whose authority the nodes do not know."""
        return Authority.new("foreign-ca").client_bundle(server(node_id or new_node_id()))


def make_bundles(folder: Path, nodes: Sequence[str]) -> Path:
    """Writes authority, client bundles and one server bundle per node (`<node>/server.pem`); returns the folder."""
    if (folder / CA).exists():
        authority = Authority.read((folder / CA).read_text())
    else:
        authority = Authority.new()
        write(folder / TC_CLIENT, authority.client_bundle(tc_client("holdfast")))
        write(folder / SDK_CLIENT, authority.client_bundle(sdk_client("worker", (EVERY_NAMESPACE,))))
        write(folder / CA_CERTIFICATE, authority.pem.encode())
        write(folder / CA, authority.bundle())
    for node in nodes:
        if not (bundle := folder / node / "server.pem").exists():
            write(bundle, authority.server_bundle(server(new_node_id())))
    return folder


def node_id_of(bundle: bytes) -> str:
    """Returns the node id in the leaf of a bundle; "" if it names none."""
    prefix = "spiffe://lockd/server/"
    for certificate in x509.load_pem_x509_certificates(bundle):
        for uri in uris_of(certificate):
            if uri.startswith(prefix):
                return uri.removeprefix(prefix).strip("/")
    return ""


def reissue(authority: Authority, path: Path) -> None:
    """Replaces a bundle by one with a new certificate and key and the same node id: the same member."""
    write(path, authority.server_bundle(server(node_id_of(path.read_bytes()))))


def write(path: Path, content: bytes) -> None:
    write_private(path, content.decode())
