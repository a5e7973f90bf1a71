"""The two PEM blocks of lockd's storage encryption, which CA and server bundles must have even if nothing is encrypted.

They are bound to the CA: its fingerprint is in the descriptor.
"""

import base64
import hashlib
import os
from collections.abc import Mapping
from typing import Any, Self

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from holdfast.check.x509 import Authority, pem_blocks

KINDS = ("KRYPT-SYSTEM-ROOT-KEY", "KRYPT-DESCRIPTOR")


class StorageAuthority(Authority):
    """A CA with its storage key: `storage` is the text of both blocks."""

    def __init__(self, certificate: x509.Certificate, key: Any) -> None:
        super().__init__(certificate, key)
        self.storage = storage_blocks(certificate)

    @classmethod
    def read(cls, text: str) -> Self:
        made = super().read(text)
        made.storage = "".join(pem for kind, pem in pem_blocks(text) if kind in KINDS) or made.storage
        return made


def storage_blocks(authority: x509.Certificate) -> str:
    """Makes a fresh root key, and its descriptor: version, algorithm, nonce length, salt, nonce, owning CA."""
    fingerprint = hashlib.sha256(authority.public_bytes(Encoding.DER)).hexdigest()
    owner = hashlib.sha256(fingerprint.encode()).digest()
    descriptor = b"\x02\x01\x0c" + os.urandom(32) + os.urandom(8) + bytes(4) + owner
    root, described = KINDS
    return block(root, {"Key-Length": "32"}, os.urandom(32)) + block(
        described, {"Name": "lockd/metadata", "Version": "2"}, descriptor
    )


def block(kind: str, headers: Mapping[str, str], body: bytes) -> str:
    """Returns a PEM block; its headers are sorted, and an empty line ends them."""
    text = base64.b64encode(body).decode()
    rows = [text[start : start + 64] for start in range(0, len(text), 64)]
    head = [*(f"{name}: {headers[name]}" for name in sorted(headers)), ""] if headers else []
    return "\n".join((f"-----BEGIN {kind}-----", *head, *rows, f"-----END {kind}-----", ""))
