"""Issues bundles for authority, server, TC client and SDK client, in the PEM layout of the public implementation."""

import base64
import datetime as dt
import hashlib
import ipaddress
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from holdfast.reference.lockd.certificates import Bundle, blocks_of, is_authority, load_bundle, uris_of
from holdfast.reference.lockd.identity import node_id_of
from holdfast.reference.lockd.ids import uuid7
from holdfast.reference.shared.settings import BadSetting

YEAR = dt.timedelta(days=365)
CLOCK_SKEW = dt.timedelta(hours=1)
EVERYTHING = "lockd://ns/ALL?perm=rw"
SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH


class Issuer:
    """Each method is one rule about what a bundle says."""

    def node_id(self, out: Path) -> str:
        """Returns the node id of the bundle that is replaced, so that the node stays the same member, or a new one."""
        return node_id_of(uris_of(load_bundle(out).leaf)) if out.exists() else uuid7()

    def server_uris(self, node_id: str, name: str) -> list[str]:  # noqa: ARG002  # a seam
        return [f"spiffe://lockd/server/{node_id}", EVERYTHING]

    def tc_client_uris(self, name: str) -> list[str]:
        return [f"spiffe://lockd/tc/{name}", EVERYTHING]

    def sdk_client_uris(self, name: str, claims: Sequence[str]) -> list[str]:
        return [f"spiffe://lockd/sdk/{name}", *claims]

    def authority(self, name: str) -> bytes:
        key = Ed25519PrivateKey.generate()
        usage = _usage(sign=True)
        certificate = (
            _builder(name, name, key, 10 * YEAR)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .sign(key, None)
        )
        return _pem(certificate) + _key(key) + root_key_blocks(certificate)

    def server(self, ca: Path, name: str, hosts: Iterable[str], out: Path) -> bytes:
        authority, rest = load_bundle(ca), _krypt(ca)
        uris = self.server_uris(self.node_id(out), name)
        return self.leaf(authority, name, uris, [SERVER, CLIENT], hosts) + rest

    def tc_client(self, ca: Path, name: str) -> bytes:
        return self.leaf(load_bundle(ca), name, self.tc_client_uris(name), [CLIENT], ())

    def sdk_client(self, ca: Path, name: str, claims: Sequence[str]) -> bytes:
        return self.leaf(load_bundle(ca), name, self.sdk_client_uris(name, claims), [CLIENT], ())

    def leaf(
        self, authority: Bundle, name: str, uris: list[str], usages: list[x509.ObjectIdentifier], hosts: Iterable[str]
    ) -> bytes:
        key, ca_key, ca = Ed25519PrivateKey.generate(), authority.key, authority.leaf
        if not isinstance(ca_key, Ed25519PrivateKey) or not is_authority(ca):
            raise BadSetting("The CA file must hold an authority with an Ed25519 key; make one with `new ca`.")
        names = [_host(each) for each in hosts] + [x509.UniformResourceIdentifier(uri) for uri in uris]
        issuer = str(ca.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)
        certificate = (
            _builder(name, issuer, key, YEAR)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(sign=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(ca_key, None)
        )
        return _pem(ca) + _pem(certificate) + _key(key)


def root_key_blocks(authority: x509.Certificate) -> bytes:
    """Makes the keys of the storage encryption, which a server bundle needs even where nothing is encrypted."""
    owner = hashlib.sha256(authority.public_bytes(serialization.Encoding.DER)).hexdigest()
    nonce = os.urandom(8) + bytes(4)
    descriptor = b"\x02\x01\x0c" + os.urandom(32) + nonce + hashlib.sha256(owner.encode()).digest()
    return _block("KRYPT-SYSTEM-ROOT-KEY", {"Key-Length": "32"}, os.urandom(32)) + _block(
        "KRYPT-DESCRIPTOR", {"Name": "lockd/metadata", "Version": "2"}, descriptor
    )


def _block(kind: str, headers: dict[str, str], body: bytes) -> bytes:
    text = base64.b64encode(body).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    head = [f"{name}: {value}" for name, value in sorted(headers.items())]
    return "\n".join([f"-----BEGIN {kind}-----", *head, "", *lines, f"-----END {kind}-----", ""]).encode()


def _krypt(ca: Path) -> bytes:
    return b"".join(block for kind, block in blocks_of(ca) if kind.startswith("KRYPT-"))


def _builder(name: str, issuer: str, key: Ed25519PrivateKey, life: dt.timedelta) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCK_SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, sign: bool) -> x509.KeyUsage:
    rest = dict.fromkeys(
        ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement", "encipher_only"), False
    )
    return x509.KeyUsage(digital_signature=True, key_cert_sign=sign, crl_sign=sign, decipher_only=False, **rest)


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
