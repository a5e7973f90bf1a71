"""Certificates that say exactly what they were told to."""

import datetime as dt
import ipaddress
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePublicKey

from holdfast.check.x509 import (
    BOTH,
    CLIENT_AUTH,
    Authority,
    Leaf,
    elliptic_key,
    is_ca,
    load_chain,
    pem_blocks,
    uris_of,
    usages_of,
    write_private,
)


def test_a_leaf_says_what_it_was_told_and_no_more() -> None:
    authority = Authority.new("tests")
    full = authority.issue(Leaf("n", ("spiffe://a/b",), (CLIENT_AUTH,), ("127.0.0.1", "*.x")))
    names = full.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert uris_of(full.certificate) == ["spiffe://a/b"]
    assert usages_of(full.certificate) == {CLIENT_AUTH}
    assert names.get_values_for_type(x509.IPAddress) == [ipaddress.ip_address("127.0.0.1")]
    assert names.get_values_for_type(x509.DNSName) == ["*.x"]
    bare = authority.issue(Leaf("n", usages=()))
    assert (uris_of(bare.certificate), usages_of(bare.certificate), is_ca(bare.certificate)) == ([], set(), False)
    assert is_ca(authority.certificate)
    bare.certificate.verify_directly_issued_by(authority.certificate)


def test_one_thing_can_be_made_wrong() -> None:
    authority, leaf = Authority.new("tests"), Leaf("n", ("spiffe://a/b",))
    expired = authority.issue(leaf.expired()).certificate
    assert expired.not_valid_after_utc < dt.datetime.now(dt.UTC)
    assert usages_of(expired) == set(BOTH)
    assert authority.issue(leaf.changed(name="m")).certificate.subject != authority.issue(leaf).certificate.subject


def test_keys_may_be_of_other_types_and_an_authority_is_read_back() -> None:
    authority = Authority.new("tests", elliptic_key())
    again = Authority.read(f"# a comment\n{authority.key_pem}{authority.pem}")
    assert again.common_name == "tests"
    issued = again.issue(Leaf("n"), elliptic_key())
    assert isinstance(issued.certificate.public_key(), EllipticCurvePublicKey)
    issued.certificate.verify_directly_issued_by(authority.certificate)
    with pytest.raises(ValueError, match="CA certificate and its private key"):
        Authority.read(authority.pem)


def test_files_are_private_and_contexts_load_them(tmp_path: Path) -> None:
    issued = Authority.new("tests").issue(Leaf("n"))
    path = write_private(tmp_path / "deep" / "x.pem", issued.pem + issued.key_pem)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [kind for kind, _ in pem_blocks(path.read_text())] == ["CERTIFICATE", "PRIVATE KEY"]
    load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), path.read_text())
