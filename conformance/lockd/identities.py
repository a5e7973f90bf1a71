"""Certificates to test with, issued by the target's own CA, which the descriptor's [credentials] names.

`ca` is a PEM file with the CA certificate and its key, of whatever key type the target uses. With it the suite makes
server certificates of any node-id, coordinator and SDK clients, wrong ones on purpose, and whole server bundles for
nodes that it starts. So identities work against any target; `bundles` is the other half, which makes the CA and the
first bundles for targets that Holdfast starts itself.

Who a caller is, the spec reads from the URIs of the certificate alone (`spiffe://lockd/server/<node-id>`, `/tc/…`,
`/sdk/…`) together with its key usages; host names and common names mean nothing. A check changes one of these at a
time. An `Identity` is immutable and makes its TLS contexts once: making one reads the chain from a file, and a
connection pool belongs to one context.
"""

import datetime as dt
import re
import ssl
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from cryptography import x509

from holdfast.check.finding import NotObservable
from holdfast.check.x509 import BEGINS, BOTH, CLIENT_AUTH, Leaf, is_ca, load_chain, pem_blocks, uris_of
from holdfast.conformance.lockd.storage_key import StorageAuthority

_SERVER = re.compile(r"spiffe://lockd/server/(.+)", re.IGNORECASE)
ALL_NAMESPACES = "lockd://ns/ALL?perm=rw"
_ENDS = dt.timedelta(days=2)


@dataclass(frozen=True)
class Identity:
    """A certificate with its key, as text; `name` is what transcripts call its owner."""

    name: str
    certificate: x509.Certificate
    chain_pem: str
    key_pem: str
    ca_pem: str
    node_id: str = ""

    @cached_property
    def client_context(self) -> ssl.SSLContext:
        """For calls to nodes: verifies chain and usage, not the host name."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        context.check_hostname = False
        load_chain(context, self.chain_pem + self.key_pem)
        return context

    @cached_property
    def server_context(self) -> ssl.SSLContext:
        """For a spy: requires callers to show a certificate of the same CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(cadata=self.ca_pem)
        context.verify_mode = ssl.CERT_REQUIRED
        load_chain(context, self.chain_pem + self.key_pem)
        return context

    @property
    def uri(self) -> str:
        return next((uri for uri in uris_of(self.certificate) if uri.startswith("spiffe:")), "")


class Authority(StorageAuthority):
    """A CA with its key, which issues identities and puts server bundles together."""

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a CA from PEM text. Raises NotObservable if the certificate or the key is missing."""
        try:
            return super().read(text)
        except ValueError as error:
            raise NotObservable(f"[credentials] ca: {error}") from error

    @classmethod
    def new(cls, name: str = "holdfast suite", key: Any = None) -> Self:
        """Makes a CA that the target does not know."""
        return super().new(name, key)

    def server(self, node_id: str | None = None, *, name: str = "", hosts: Iterable[str] = ("*",)) -> Identity:
        """Issues a server certificate, with a fresh node-id if none is given."""
        node_id = node_id or str(uuid.uuid4())
        uris = (f"spiffe://lockd/server/{node_id}", ALL_NAMESPACES)
        return self.identity(name or node_id[:8], uris, BOTH, hosts=hosts)

    def coordinator_client(self, name: str = "tc-client") -> Identity:
        """Issues the certificate of a coordinator client."""
        return self.identity(name, (f"spiffe://lockd/tc/{name}", ALL_NAMESPACES), (CLIENT_AUTH,))

    def identity(
        self,
        name: str,
        uris: Iterable[str],
        usages: Iterable[x509.ObjectIdentifier],
        *,
        hosts: Iterable[str] = (),
        common_name: str = "",
        begins: dt.timedelta = BEGINS,
        ends: dt.timedelta = _ENDS,
    ) -> Identity:
        """Issues a certificate that says exactly this, right or wrong."""
        leaf = Leaf(common_name or name, tuple(uris), tuple(usages), tuple(hosts), begins, ends)
        issued = self.issue(leaf)
        node_id = node_id_of(issued.certificate)
        return Identity(name, issued.certificate, issued.pem, issued.key_pem, self.pem, node_id)

    def bundle(self, identity: Identity) -> str:
        """Returns a server bundle as nodes load it: CA, leaf, key and the two storage blocks, and nothing else."""
        return self.pem + identity.chain_pem + identity.key_pem + self.storage


def read_identity(name: str, text: str) -> Identity:
    """Reads a bundle of the target; the leaf is recognised by its content, not by its place."""
    blocks = pem_blocks(text)
    pems = [pem for kind, pem in blocks if kind == "CERTIFICATE"]
    certificates = [(x509.load_pem_x509_certificate(pem.encode()), pem) for pem in pems]
    leaf = next(((c, pem) for c, pem in certificates if not is_ca(c)), None)
    key = next((pem for kind, pem in blocks if kind.endswith("PRIVATE KEY")), "")
    if leaf is None or not key:
        raise NotObservable(f"a bundle of {name} with a leaf certificate and its key")
    ca = "".join(pem for certificate, pem in certificates if is_ca(certificate))
    return Identity(name, leaf[0], leaf[1], key, ca, node_id_of(leaf[0]))


def server_ids(uris: Iterable[str]) -> list[str]:
    """Returns the node-ids that these URIs name."""
    return [match[1].strip("/") for uri in uris if (match := _SERVER.fullmatch(uri))]


def node_id_of(certificate: x509.Certificate) -> str:
    return next(iter(server_ids(uris_of(certificate))), "")
