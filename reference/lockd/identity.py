"""Who is calling (spec: Identity and Auth): only the caller's certificate says so, never a request."""

import hashlib
import ssl
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from holdfast.reference.lockd.certificates import Bundle, issued_by, server_context, uris_of, usages_of
from holdfast.reference.lockd.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.lockd.settings import Settings

EVERY_NAMESPACE = "ALL"


@dataclass(frozen=True)
class Caller:
    """What a certificate says about the caller that presented it."""

    uris: tuple[str, ...] = ()
    usages: frozenset[str] = frozenset()
    trusted: bool = False
    common_name: str = ""
    serial: int = 0
    public_key: bytes = b""


def node_id_of(uris: tuple[str, ...]) -> str:
    """Returns the node id in the first SPIFFE server URI; URIs of other roles name no server."""
    for uri in uris:
        url = urlsplit(uri)
        is_server = url.scheme == "spiffe" and url.netloc.lower() == "lockd" and url.path.startswith("/server/")
        if is_server and (found := url.path.removeprefix("/server/").strip("/")):
            return found
    return ""


class Identity:
    def __init__(self, settings: "Settings", bundle: Bundle | None, trust: tuple[x509.Certificate, ...]) -> None:
        self.settings = settings
        self.bundle = bundle
        self._trust = trust
        if bundle is not None and settings.tc_allow_default_ca:
            self._trust += bundle.authorities
        self.caller_of = lru_cache(1024)(self.read_certificate)

    def own(self) -> str:
        """Returns the node's own identity; without mTLS that is a hash of its endpoint, the same at each start."""
        if self.bundle is None:
            return hashlib.sha256(self.settings.self_endpoint.encode()).hexdigest()
        return self.identity_from_cert(self.own_caller())

    def listener(self, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext | None:
        return server_context(self.bundle, trusted) if self.bundle is not None else None

    def own_caller(self) -> Caller:
        assert self.bundle is not None
        return Caller(uris_of(self.bundle.leaf))

    def read_certificate(self, der: bytes) -> Caller:
        certificate = x509.load_der_x509_certificate(der)
        names = certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        denied = self.bundle is not None and certificate.serial_number in self.bundle.denied
        return Caller(
            uris=uris_of(certificate),
            usages=usages_of(certificate),
            trusted=not denied and issued_by(certificate, self._trust),
            common_name=str(names[0].value) if names else "",
            serial=certificate.serial_number,
            public_key=certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        )

    def identity_from_cert(self, caller: Caller) -> str:
        return node_id_of(caller.uris)

    def member_identity(self, caller: Caller | None) -> str:
        found = self.identity_from_cert(caller) if caller is not None else ""
        if not found:
            raise Refusal(403, "tc_cluster_identity_missing", "The certificate has no spiffe://lockd/server/ URI.")
        return found

    def unchecked(self) -> bool:
        return self.settings.tc_disable_auth or self.settings.disable_mtls

    def authorize_client(self, caller: Caller | None, path: str) -> None:  # noqa: ARG002  # a seam
        if self.unchecked():
            return
        if caller is None:
            raise Refusal(403, "tc_client_required", "This call needs a client certificate.")
        if "client" not in caller.usages or not caller.trusted:
            raise Refusal(403, "tc_forbidden", "The certificate is not trusted for coordinator calls.")

    def authorize_server(self, caller: Caller | None, path: str) -> None:  # noqa: ARG002  # a seam
        if self.unchecked():
            return
        if caller is None:
            raise Refusal(403, "tc_server_required", "This call needs a server certificate.")
        if "server" not in caller.usages or not caller.trusted:
            raise Refusal(403, "tc_forbidden", "The certificate is not trusted as a server's.")

    def authorize_namespaces(self, caller: Caller | None, namespaces: set[str]) -> None:
        """Refuses a decision without write access to its namespaces, or to all when it names none."""
        if self.settings.disable_mtls:
            return
        allowed = _writable(caller.uris if caller else ())
        if EVERY_NAMESPACE not in allowed and not (namespaces and namespaces <= allowed):
            raise Refusal(403, "namespace_forbidden", "The certificate has no claim to write there.")


def _writable(uris: tuple[str, ...]) -> set[str]:
    found = set()
    for uri in uris:
        url = urlsplit(uri)
        if url.scheme == "lockd" and url.netloc == "ns" and parse_qs(url.query).get("perm") == ["rw"]:
            found.add(url.path.strip("/"))
    return found
