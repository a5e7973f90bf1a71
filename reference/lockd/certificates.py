"""Bundles: PEM files with CA, leaf and key. Blocks are recognised by what they hold, not by their order."""

import re
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID

from holdfast.reference.shared.settings import BadSetting

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 -]+)-----\n.*?-----END \1-----\n?", re.DOTALL)
_PEM = serialization.Encoding.PEM
_RAW = (serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


@dataclass(frozen=True)
class Bundle:
    authorities: tuple[x509.Certificate, ...]
    leaf: x509.Certificate
    key: PrivateKeyTypes
    denied: frozenset[int] = frozenset()

    def authority_pem(self) -> str:
        return "".join(each.public_bytes(_PEM).decode() for each in self.authorities)


def blocks_of(path: Path) -> list[tuple[str, bytes]]:
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BadSetting(f"The bundle {path} can't be read: {error.strerror}.") from None
    if _BLOCK.sub(b"", raw):
        raise BadSetting(f"The bundle {path} holds something besides PEM blocks; make it again with the bundle tool.")
    return [(found[1].decode(), found[0]) for found in _BLOCK.finditer(raw)]


def load_bundle(path: Path) -> Bundle:
    certificates, keys, denied = [], [], set()
    try:
        for kind, block in blocks_of(path):
            if kind == "CERTIFICATE":
                certificates.append(x509.load_pem_x509_certificate(block))
            elif kind.endswith("PRIVATE KEY"):
                keys.append(serialization.load_pem_private_key(block, None))
            elif kind == "LOCKD DENYLIST":
                denied |= {int(serial, 16) for serial in _body(block).split()}
    except ValueError as error:
        raise BadSetting(f"The bundle {path} is damaged: {error}") from None
    return _put_together(path, certificates, keys, denied)


def _put_together(
    path: Path, certificates: list[x509.Certificate], keys: list[PrivateKeyTypes], denied: set[int]
) -> Bundle:
    leaves = [(leaf, key) for leaf in certificates for key in keys if _fits(leaf, key)]
    authorities = tuple(each for each in certificates if is_authority(each))
    if not leaves or not authorities:
        raise BadSetting(f"The bundle {path} needs the CA's certificate, a leaf certificate and the key to it.")
    return Bundle(authorities, *leaves[0], frozenset(denied))


def _body(block: bytes) -> str:
    import base64

    lines = block.decode().strip().splitlines()[1:-1]
    return base64.b64decode("".join(line for line in lines if ":" not in line)).decode()


def _fits(leaf: x509.Certificate, key: PrivateKeyTypes) -> bool:
    return leaf.public_key().public_bytes(*_RAW) == key.public_key().public_bytes(*_RAW)


def is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def uris_of(certificate: x509.Certificate) -> tuple[str, ...]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    return tuple(names.get_values_for_type(x509.UniformResourceIdentifier))


def usages_of(certificate: x509.Certificate) -> frozenset[str]:
    try:
        usages = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return frozenset()
    named = {ExtendedKeyUsageOID.SERVER_AUTH: "server", ExtendedKeyUsageOID.CLIENT_AUTH: "client"}
    return frozenset(named[usage] for usage in usages if usage in named)


def issued_by(leaf: x509.Certificate, authorities: tuple[x509.Certificate, ...]) -> bool:
    for authority in authorities:
        try:
            leaf.verify_directly_issued_by(authority)
        except Exception:  # noqa: BLE001, S112  # each kind of key fails in its own way
            continue
        return True
    return False


def trusted_in(folder: str) -> tuple[x509.Certificate, ...]:
    """Returns the CAs of a trust directory, none when it is missing or empty."""
    if not folder or not Path(folder).is_dir():
        return ()
    found: list[x509.Certificate] = []
    for path in sorted(Path(folder).iterdir()):
        if path.is_file():
            found += [x509.load_pem_x509_certificate(block) for kind, block in blocks_of(path) if kind == "CERTIFICATE"]
    return tuple(each for each in found if is_authority(each))


def server_context(bundle: Bundle, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext:
    """Returns the listener's TLS context: a caller without a certificate for clientAuth fails the handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.verify_mode = ssl.CERT_REQUIRED
    return _armed(context, bundle, trusted)


def client_context(bundle: Bundle, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext:
    """Returns the TLS context of calls. It verifies chain and usage, but no host name: identity is the SPIFFE URI."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    return _armed(context, bundle, trusted)


def _armed(context: ssl.SSLContext, bundle: Bundle, trusted: tuple[x509.Certificate, ...]) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    pem = bundle.authority_pem() + "".join(each.public_bytes(_PEM).decode() for each in trusted)
    context.load_verify_locations(cadata=pem)
    with tempfile.NamedTemporaryFile() as file:  # the library takes certificate and key from a file only
        file.write(bundle.leaf.public_bytes(_PEM) + _key_pem(bundle.key))
        file.flush()
        context.load_cert_chain(file.name)
    return context


def _key_pem(key: PrivateKeyTypes) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
