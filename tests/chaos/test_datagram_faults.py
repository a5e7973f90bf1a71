"""Faults on UDP links of a node that speaks QUIC and of one that echoes: proven, healed, and found out if they lie."""

from pathlib import Path

import pytest

from holdfast.chaos.faults.datagram_canary import DatagramCanary, datagram_question
from holdfast.chaos.proxied import SPOILS, DatagramLink
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.target.fault import Fault, Option
from holdfast.target.link_urls import Wire
from tests.chaos.wire_world import described, proven, standing

KINDS: list[tuple[str, dict[str, Option]]] = [
    ("loss", {"share": 0.05}),
    ("loss", {"share": 0.3, "direction": "up"}),
    ("loss", {"share": 0.02, "direction": "down"}),
    ("duplicate", {"share": 0.1}),
    ("duplicate", {"share": 0.1, "direction": "down"}),
    ("reorder", {"share": 0.2}),
    ("corrupt", {"share": 0.1}),
    ("corrupt", {"share": 0.1, "direction": "up"}),
    ("delay", {"seconds": 0.2}),
    ("delay", {"seconds": 0.2, "jitter": 0.1, "direction": "up"}),
    ("rate", {"kilobytes": 20.0}),
    ("rate", {"kilobytes": 20.0, "direction": "down"}),
    ("stall", {}),
    ("stall", {"direction": "up"}),
    ("stall", {"direction": "down"}),
]


def named(kind: tuple[str, dict[str, Option]]) -> str:
    return Fault(kind[0], "", kind[1]).describe().replace(" ", "-")


@pytest.mark.parametrize("url", ["quic", "echo"])
async def test_a_fault_on_datagrams_is_proven_and_so_is_its_end(
    guardian: Guardian, ports: PortPool, tmp_path: Path, url: str
) -> None:
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:
        for kind, options in [*KINDS, ("rebind", {})]:
            await proven(deployment, Fault(kind, f"a-client.{url}", options))


async def test_nodes_reach_each_other_over_udp_through_links(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    told = 'OTHER = "{nodes.b.quic},{nodes.a.echo}"\n'
    async with standing(guardian, ports, described(tmp_path, "a", "b", more=told)) as deployment:
        link = deployment.opened("a-b.quic")
        assert (link.wire, isinstance(link.link, DatagramLink)) == (Wire.QUIC, True)
        quic, echo = deployment.fill("{nodes.b.quic} {nodes.b.echo}", "a").split(" ")
        assert quic == f"https://127.0.0.1:{link.link.port}"
        assert echo == f"udp://127.0.0.1:{deployment.peer_link('a', 'b', 'echo').port}"
        await proven(deployment, Fault("loss", "a-b.quic", {"share": 0.1}))
        await proven(deployment, Fault("stall", "a-b.echo", {"direction": "down"}))


@pytest.mark.parametrize("kind", [*KINDS, ("rate", {"kilobytes": 100.0, "direction": "down"})], ids=named)
async def test_a_relay_that_does_nothing_to_datagrams_is_found_out(
    guardian: Guardian,
    ports: PortPool,
    tmp_path: Path,
    kind: tuple[str, dict[str, Option]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("holdfast.chaos.relay.server.PROCESS", "tests.chaos.mutant_relay:main")
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:
        injected = await deployment.fault_plane().inject(Fault(kind[0], "a-client.quic", kind[1]))
        proof = await injected.proof()
        await injected.heal()
    assert not proof.proven, proof.seen


@pytest.mark.parametrize(("put", "said"), [("stall", "loss"), ("duplicate", "loss"), ("loss", "duplicate")])
async def test_a_fault_of_another_kind_is_found_out(
    guardian: Guardian, ports: PortPool, tmp_path: Path, put: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:

        async def spoil(link: DatagramLink, _: str, share: float, direction: str) -> None:
            if put == "stall":
                await link.stall(direction)
            else:
                await link._put(*_toxic(put, share, direction))

        monkeypatch.setattr(DatagramLink, "spoil", spoil)
        injected = await deployment.fault_plane().inject(Fault(said, "a-client.quic", {"share": 0.1}))
        proof = await injected.proof()
        await injected.heal()
    assert not proof.proven, proof.seen


def _toxic(kind: str, share: float, direction: str) -> tuple[str, str, dict[str, float]]:
    toxic, attribute = SPOILS[kind]
    return toxic, direction, {attribute: share}


async def test_a_dead_node_proves_nothing(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:
        await deployment.fault_plane().client_url("a", "quic")
        await deployment.nodes["a"].kill()
        injected = await deployment.fault_plane().inject(Fault("loss", "a-client.quic", {"share": 0.9}))
        assert "even before the fault" in (await injected.proof()).seen
        assert not (await injected.heal()).proven


@pytest.mark.parametrize("kind", ["cut", "refuse", "lose", "flood"])
async def test_what_a_udp_link_does_not_know_is_refused_in_one_sentence(
    guardian: Guardian, ports: PortPool, tmp_path: Path, kind: str
) -> None:
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:
        with pytest.raises(ValueError, match="a UDP link knows loss, duplicate"):
            await deployment.fault_plane().inject(Fault(kind, "a-client.quic"))


@pytest.mark.parametrize("wire", [Wire.QUIC, Wire.UDP])
def test_a_question_knows_its_own_answers_only(wire: Wire) -> None:
    one, other = datagram_question(wire), datagram_question(wire)
    if wire is Wire.UDP:
        assert one.number(one.request(7)) == 7
        assert other.number(one.request(7)) is None
        for bit in range(8 * len(asked := one.request(7))):
            turned = bytearray(asked)
            turned[bit // 8] ^= 1 << bit % 8
            assert one.number(bytes(turned)) is None
    assert one.number(b"") is None
    assert one.number(bytes(100)) is None
    assert len(one.request(1)) == len(one.request(70_000))


async def test_a_canary_without_a_link_sees_silence(ports: PortPool) -> None:
    canary = DatagramCanary(ports.take(), datagram_question(Wire.QUIC))
    seen = await canary.ask(3, 0.2)
    canary.close()
    assert (seen.answered, seen.lost) == (0, 3)
