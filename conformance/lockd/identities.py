"""Certificates to test with, issued by the target's own CA, which the descriptor's [credentials] names.

`ca` is a PEM file with the CA certificate and its key. With it the suite makes server certificates of any node-id,
coordinator and SDK clients, wrong ones on purpose, and whole server bundles for nodes that it starts.
"""

import datetime as dt
import hashlib
import os
import re
import ssl
import tempfile
import uuid
from base64 import b64decode, encodebytes
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.finding import NotObservable

_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 -]+)-----\n(.*?)-----END \1-----\n?", re.DOTALL)
_SERVER = re.compile(r"spiffe://lockd/server/(.+)", re.IGNORECASE)
SERVER_AUTH, CLIENT_AUTH = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
ALL_NAMESPACES = "lockd://ns/ALL?perm=rw"
# From now; clocks may differ by an hour or two.
_BEGINS, _ENDS = dt.timedelta(hours=-2), dt.timedelta(days=2)
_KRYPT = ("KRYPT-SYSTEM-ROOT-KEY", "KRYPT-DESCRIPTOR")


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
        """For calls to nodes: chain and usage count, host names do not."""
        context = ssl.create_default_context(cadata=self.ca_pem)
        context.check_hostname = False
        load_chain(context, self.chain_pem + self.key_pem)
        return context

    @cached_property
    def server_context(self) -> ssl.SSLContext:
        """For a spy: callers must show a certificate of the same CA."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_verify_locations(cadata=self.ca_pem)
        context.verify_mode = ssl.CERT_REQUIRED
        load_chain(context, self.chain_pem + self.key_pem)
        return context

    @property
    def uri(self) -> str:
        return next((uri for uri in uris_of(self.certificate) if uri.startswith("spiffe:")), "")


class Authority:
    """A CA with its key."""

    def __init__(self, certificate: x509.Certificate, key: Any, krypt: Sequence[str] = ()) -> None:
        self.certificate = certificate
        self.pem = certificate.public_bytes(serialization.Encoding.PEM).decode()
        self._key = key
        self._krypt = krypt

    @classmethod
    def read(cls, text: str) -> "Authority":
        blocks = pem_blocks(text)
        certificates = [x509.load_pem_x509_certificate(pem.encode()) for kind, pem in blocks if kind == "CERTIFICATE"]
        keys = [pem for kind, pem in blocks if kind.endswith("PRIVATE KEY")]
        if not certificates or not keys:
            raise NotObservable("[credentials] ca: a PEM file with the CA certificate and its private key")
        key = serialization.load_pem_private_key(keys[0].encode(), password=None)
        return cls(certificates[0], key, [pem for kind, pem in blocks if kind in _KRYPT])

    @classmethod
    def new(cls, name: str = "holdfast suite") -> "Authority":
        """A CA that the target does not know."""
        key = ed25519.Ed25519PrivateKey.generate()
        subject = _name(name)
        builder = _builder(subject, subject, key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        return cls(builder.add_extension(_usage(ca=True), critical=True).sign(key, None), key)

    @property
    def common_name(self) -> str:
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    # ------------------------------------------------------------- what it issues

    def server(self, node_id: str | None = None, *, name: str = "", hosts: Iterable[str] = ("*",)) -> Identity:
        node_id = node_id or str(uuid.uuid4())
        uris = (f"spiffe://lockd/server/{node_id}", ALL_NAMESPACES)
        return self.issue(name or node_id[:8], uris, (SERVER_AUTH, CLIENT_AUTH), hosts=hosts)

    def coordinator_client(self, name: str = "tc-client") -> Identity:
        return self.issue(name, (f"spiffe://lockd/tc/{name}", ALL_NAMESPACES), (CLIENT_AUTH,))

    def issue(
        self,
        name: str,
        uris: Iterable[str],
        usages: Iterable[x509.ObjectIdentifier],
        *,
        hosts: Iterable[str] = (),
        common_name: str = "",
        begins: dt.timedelta = _BEGINS,
        ends: dt.timedelta = _ENDS,
    ) -> Identity:
        key = ed25519.Ed25519PrivateKey.generate()
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        names += [x509.DNSName(host) for host in hosts]
        builder = _builder(_name(common_name or name), self.certificate.subject, key.public_key(), begins, ends)
        issuer: Any = self._key.public_key()
        builder = (
            builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(ca=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(list(usages)), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, _digest(self._key))
        chain = certificate.public_bytes(serialization.Encoding.PEM).decode()
        return Identity(name, certificate, chain, _key_pem(key), self.pem, node_id_of(certificate))

    def bundle(self, identity: Identity) -> str:
        """A server bundle as nodes load it: CA, leaf, key and the two storage blocks, and nothing else."""
        krypt = self._krypt or (_root_key(), _descriptor(self.certificate))
        return "".join((self.pem, identity.chain_pem, identity.key_pem, *krypt))


def read_identity(name: str, text: str) -> Identity:
    """A bundle of the target: its leaf is told from the CA by content, not by order."""
    blocks = pem_blocks(text)
    pems = [pem for kind, pem in blocks if kind == "CERTIFICATE"]
    certificates = [(x509.load_pem_x509_certificate(pem.encode()), pem) for pem in pems]
    leaf = next(((c, pem) for c, pem in certificates if not is_ca(c)), None)
    key = next((pem for kind, pem in blocks if kind.endswith("PRIVATE KEY")), "")
    if leaf is None or not key:
        raise NotObservable(f"a bundle of {name} with a leaf certificate and its key")
    ca = "".join(pem for certificate, pem in certificates if is_ca(certificate))
    return Identity(name, leaf[0], leaf[1], key, ca, node_id_of(leaf[0]))


def pem_blocks(text: str) -> list[tuple[str, str]]:
    return [(match[1], match[0] if match[0].endswith("\n") else f"{match[0]}\n") for match in _BLOCK.finditer(text)]


def der_of(pem: str) -> bytes:
    match = _BLOCK.search(pem)
    return b64decode(match[2]) if match else b""


def load_chain(context: ssl.SSLContext, pem: str) -> None:
    """The ssl module takes files only; this one is gone again before the call returns."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


def write_bundle(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def is_ca(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def uris_of(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return names.get_values_for_type(x509.UniformResourceIdentifier)


def usages_of(certificate: x509.Certificate) -> set[x509.ObjectIdentifier]:
    try:
        return set(certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)
    except x509.ExtensionNotFound:
        return set()


def server_ids(uris: Iterable[str]) -> list[str]:
    """The node-ids that these URIs name."""
    return [match[1].strip("/") for uri in uris if (match := _SERVER.fullmatch(uri))]


def node_id_of(certificate: x509.Certificate) -> str:
    return next(iter(server_ids(uris_of(certificate))), "")


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ed25519.Ed25519PublicKey,
    begins: dt.timedelta = _BEGINS,
    ends: dt.timedelta = _ENDS,
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=ca,
        crl_sign=ca,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _digest(key: Any) -> Any:
    """Ed25519 has its digest built in; RSA and EC keys want one named."""
    from cryptography.hazmat.primitives import hashes

    return None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256()


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _key_pem(key: ed25519.Ed25519PrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _root_key() -> str:
    return _block("KRYPT-SYSTEM-ROOT-KEY", {"Key-Length": "32"}, os.urandom(32))


def _descriptor(ca: x509.Certificate) -> str:
    """Version, algorithm and nonce length, a salt, a nonce with its counter at zero, and the CA that it belongs to."""
    fingerprint = hashlib.sha256(ca.public_bytes(serialization.Encoding.DER)).hexdigest()
    owner = hashlib.sha256(fingerprint.encode()).digest()
    body = b"\x02\x01\x0c" + os.urandom(32) + os.urandom(8) + bytes(4) + owner
    return _block("KRYPT-DESCRIPTOR", {"Name": "lockd/metadata", "Version": "2"}, body)


def _block(kind: str, headers: dict[str, str], body: bytes) -> str:
    lines = "".join(f"{name}: {value}\n" for name, value in sorted(headers.items()))
    text = encodebytes(body).decode().replace("\n", "")
    wrapped = "\n".join(text[at : at + 64] for at in range(0, len(text), 64))
    return f"-----BEGIN {kind}-----\n{lines}\n{wrapped}\n-----END {kind}-----\n"
