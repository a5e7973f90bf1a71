import ssl
from pathlib import Path

import pytest

from holdfast.check.finding import NotObservable
from holdfast.check.x509 import CLIENT_AUTH, SERVER_AUTH, is_ca, pem_blocks, uris_of, usages_of, write_private
from holdfast.conformance.lockd.identities import Authority, node_id_of, read_identity


def _authority_text(authority: Authority) -> str:
    bundle = authority.bundle(authority.server("n"))
    krypt = [pem for kind, pem in pem_blocks(bundle) if kind.startswith("KRYPT")]
    return authority.pem + "".join(krypt)


def test_a_server_certificate_has_its_node_id_and_both_usages() -> None:
    server = Authority.new().server("node-1")
    assert uris_of(server.certificate) == ["spiffe://lockd/server/node-1", "lockd://ns/ALL?perm=rw"]
    assert usages_of(server.certificate) == {SERVER_AUTH, CLIENT_AUTH}
    assert node_id_of(server.certificate) == server.node_id == "node-1"
    assert not is_ca(server.certificate)


def test_the_same_node_id_can_be_issued_again_with_another_key() -> None:
    authority = Authority.new()
    one, two = authority.server("n"), authority.server("n")
    assert one.node_id == two.node_id
    assert one.certificate.serial_number != two.certificate.serial_number
    assert one.key_pem != two.key_pem


def test_clients_give_no_membership_identity() -> None:
    client = Authority.new().coordinator_client("worker")
    assert client.node_id == ""
    assert client.uri == "spiffe://lockd/tc/worker"
    assert usages_of(client.certificate) == {CLIENT_AUTH}


def test_a_bundle_has_the_blocks_that_nodes_load_and_nothing_else() -> None:
    authority = Authority.new()
    text = authority.bundle(authority.server("n"))
    blocks = pem_blocks(text)
    assert [kind for kind, _ in blocks] == [
        "CERTIFICATE",
        "CERTIFICATE",
        "PRIVATE KEY",
        "KRYPT-SYSTEM-ROOT-KEY",
        "KRYPT-DESCRIPTOR",
    ]
    assert "".join(pem for _, pem in blocks) == text
    read = read_identity("n", text)
    assert (read.node_id, read.ca_pem) == ("n", authority.pem)


def test_the_storage_blocks_have_their_lengths() -> None:
    import base64

    text = _authority_text(Authority.new())
    for kind, pem in pem_blocks(text)[1:]:
        headers, _, body = pem.partition("\n\n")
        raw = base64.b64decode(body.partition("-----END")[0])
        assert len(raw) == {"KRYPT-SYSTEM-ROOT-KEY": 32, "KRYPT-DESCRIPTOR": 79}[kind]
        assert headers.startswith(f"-----BEGIN {kind}-----\n")


def test_an_authority_without_its_key_is_told_apart() -> None:
    with pytest.raises(NotObservable, match="ca"):
        Authority.read(Authority.new().pem)


def test_an_authority_is_read_from_certificate_and_key(tmp_path: Path) -> None:

    made = Authority.new()
    key = made.key_pem
    path = write_private(tmp_path / "ca.pem", made.pem + key)
    assert path.stat().st_mode & 0o777 == 0o600
    read = Authority.read(path.read_text())
    assert read.certificate == made.certificate
    leaf = read.server("n")
    leaf.certificate.verify_directly_issued_by(made.certificate)


def test_contexts_ask_for_certificates_and_leave_host_names_alone() -> None:
    server = Authority.new().server("n")
    assert server.server_context.verify_mode is ssl.CERT_REQUIRED
    assert server.client_context.verify_mode is ssl.CERT_REQUIRED
    assert not server.client_context.check_hostname
