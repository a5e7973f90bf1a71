"""The bundle tool, as an operator uses it."""

from pathlib import Path

import pytest

from holdfast.reference.lockd.bundle import main
from holdfast.reference.lockd.certificates import load_bundle, uris_of
from holdfast.reference.lockd.identity import node_id_of


@pytest.fixture
def ca(tmp_path: Path) -> Path:
    assert main(["new", "ca", "--out", str(tmp_path / "ca.pem")]) == 0
    return tmp_path / "ca.pem"


def made(kind: str, ca: Path, out: Path, *words: str) -> tuple[str, ...]:
    assert main(["new", kind, "--ca-in", str(ca), "--out", str(out), *words]) == 0
    return uris_of(load_bundle(out).leaf)


def test_two_servers_have_two_node_ids(ca: Path, tmp_path: Path) -> None:
    ids = {node_id_of(made("server", ca, tmp_path / f"{name}.pem")) for name in "ab"}
    assert len(ids) == 2


def test_a_bundle_made_anew_keeps_its_node_id(ca: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.pem"
    first, before = made("server", ca, out, "--hosts", "127.0.0.1,localhost"), load_bundle(out).leaf
    assert main(["new", "server", "--ca-in", str(ca), "--out", str(out)]) == 1
    assert made("server", ca, out, "--force") == first
    assert load_bundle(out).leaf.serial_number != before.serial_number
    assert load_bundle(out).leaf.public_key() != before.public_key()


def test_clients_carry_their_path(ca: Path, tmp_path: Path) -> None:
    assert made("tcclient", ca, tmp_path / "t.pem", "--cn", "x")[0] == "spiffe://lockd/tc/x"
    found = made("client", ca, tmp_path / "s.pem", "--cn", "y", "--namespace", "n=r")
    assert found == ("spiffe://lockd/sdk/y", "lockd://ns/n?perm=r")


def test_a_mistake_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "server", "--out", str(tmp_path / "a.pem")]) == 1
    assert "--ca-in is missing" in capsys.readouterr().err
    assert main(["new", "server", "--ca-in", str(tmp_path / "absent"), "--out", str(tmp_path / "a.pem")]) == 1
    assert "can't be read" in capsys.readouterr().err


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_broken_tool_shows(ca: Path, tmp_path: Path, number: int) -> None:
    words = ("--violate", f"TC-IDENT-02/{number}")
    servers = [made("server", ca, tmp_path / f"{name}.pem", *words) for name in "ab"]
    again = made("server", ca, tmp_path / "a.pem", "--force", *words)
    tc = made("tcclient", ca, tmp_path / "t.pem", *words)
    sdk = made("client", ca, tmp_path / "s.pem", *words)
    broken = (
        servers[0] == servers[1],
        again != servers[0],
        not tc[0].startswith("spiffe://lockd/tc/"),
        not sdk[0].startswith("spiffe://lockd/sdk/"),
    )
    assert [place for place, seen in enumerate(broken, 1) if seen] == [number]
