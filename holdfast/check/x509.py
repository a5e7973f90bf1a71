"""Certificates to test with: an authority that signs exactly what it is told, right or wrong.

A `Leaf` says what a certificate is to contain; `changed` makes one that differs in one thing, which is how a check
makes one that must be refused. Strict verifiers (the default from Python 3.13 on) require key identifiers and critical
key usage, so every certificate has both. Keys are Ed25519 unless the caller makes another one.
"""

import datetime as dt
import ipaddress
import re
import ssl
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER_AUTH, CLIENT_AUTH = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
BOTH = (SERVER_AUTH, CLIENT_AUTH)
# Validity relative to now; it begins early because clocks may differ by an hour or two.
BEGINS, ENDS = dt.timedelta(hours=-2), dt.timedelta(days=365)
_CA_ENDS = 10 * ENDS
_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 -]+)-----\n(.*?)-----END \1-----\n?", re.DOTALL)


@dataclass(frozen=True)
class Leaf:
    """What a certificate is to contain. Without usages it has no such extension, without names no alternative names."""

    name: str
    uris: tuple[str, ...] = ()
    usages: tuple[x509.ObjectIdentifier, ...] = BOTH
    hosts: tuple[str, ...] = ()
    begins: dt.timedelta = BEGINS
    ends: dt.timedelta = ENDS

    def changed(self, **values: object) -> "Leaf":
        return replace(self, **values)  # type: ignore[arg-type]  # named fields of this class

    def expired(self) -> "Leaf":
        return self.changed(begins=2 * BEGINS, ends=BEGINS)


@dataclass(frozen=True)
class Issued:
    """A certificate with its key, as PEM text."""

    certificate: x509.Certificate
    pem: str
    key_pem: str


class Authority:
    """A CA with its key, of whatever type; `issue` signs a leaf."""

    def __init__(self, certificate: x509.Certificate, key: Any) -> None:
        self.certificate = certificate
        self.pem = certificate_pem(certificate)
        self._key = key

    @classmethod
    def new(cls, name: str, key: Any = None) -> Self:
        """Makes a CA; its key is Ed25519 unless one is given."""
        key = key or Ed25519PrivateKey.generate()
        builder = (
            _builder(_name(name), _name(name), key.public_key(), BEGINS, _CA_ENDS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs=True), critical=True)
        )
        return cls(builder.sign(key, _digest(key)), key)

    @classmethod
    def read(cls, text: str) -> Self:
        """Reads a CA from PEM text. Raises ValueError if the certificate or the key is missing."""
        blocks = pem_blocks(text)
        certificates = [pem for kind, pem in blocks if kind == "CERTIFICATE"]
        keys = [pem for kind, pem in blocks if kind.endswith("PRIVATE KEY")]
        if not certificates or not keys:
            raise ValueError("a PEM file with the CA certificate and its private key")
        key = load_pem_private_key(keys[0].encode(), None)
        return cls(x509.load_pem_x509_certificate(certificates[0].encode()), key)

    @property
    def key_pem(self) -> str:
        return private_pem(self._key)

    @property
    def common_name(self) -> str:
        return str(self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

    def issue(self, leaf: Leaf, key: Any = None) -> Issued:
        """Signs a certificate that says exactly this; its key is a fresh Ed25519 one unless one is given."""
        key = key or Ed25519PrivateKey.generate()
        issuer: Any = self._key.public_key()
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in leaf.uris]
        names += [_host(host) for host in leaf.hosts]
        builder = (
            _builder(_name(leaf.name), self.certificate.subject, key.public_key(), leaf.begins, leaf.ends)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs=False), critical=True)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )
        if leaf.usages:
            builder = builder.add_extension(x509.ExtendedKeyUsage(leaf.usages), critical=False)
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        certificate = builder.sign(self._key, _digest(self._key))
        return Issued(certificate, certificate_pem(certificate), private_pem(key))


def elliptic_key() -> ec.EllipticCurvePrivateKey:
    """Makes a key on P-256, which every client takes; some do not take Ed25519."""
    return ec.generate_private_key(ec.SECP256R1())


def pem_blocks(text: str) -> list[tuple[str, str]]:
    """Returns kind and text of each PEM block, in order."""
    return [(match[1], match[0] if match[0].endswith("\n") else f"{match[0]}\n") for match in _BLOCK.finditer(text)]


def certificate_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def private_pem(key: Any) -> str:
    pem: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return pem.decode()


def write_private(path: Path, text: str) -> Path:
    """Writes a file that only its owner can read, in a folder that is made for it; returns its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)
    return path


def load_chain(context: ssl.SSLContext, pem: str) -> None:
    """Loads certificate and key; the ssl module reads files only, so one exists during the call."""
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)


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


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Any, begins: dt.timedelta, ends: dt.timedelta
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


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _digest(key: Any) -> hashes.SHA256 | None:
    """Returns the digest to sign with: none for Ed25519, which has it built in."""
    return None if isinstance(key, Ed25519PrivateKey) else hashes.SHA256()


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
