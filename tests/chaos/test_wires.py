"""Links to each URL of a node: gRPC, Sentinels and stubs, through ports of links or through the gateway."""

from itertools import product
from pathlib import Path

import pytest

from holdfast.chaos.links.client import LinkServer
from holdfast.chaos.relay.server import RelayServer
from holdfast.chaos.schedules.offer import offer_of
from holdfast.chaos.toxiproxy import Toxiproxy
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.stores import StoreSet
from holdfast.target.descriptor import load
from holdfast.target.fault import Fault
from holdfast.target.store_section import StorePlan
from tests.chaos.wire_node import say, serve_grpc
from tests.chaos.wire_world import THROUGH_PROXY, calls, described, proven, standing

NAMES = ("gc-1", "mc-1", "mc-2")
ALL = set(product(NAMES, NAMES))


@pytest.mark.parametrize("more", ["", THROUGH_PROXY], ids=["told", "through-the-gateway"])
@pytest.mark.parametrize("kind", ["cut", "refuse", "stall"])
async def test_a_grpc_call_is_cut_and_healed_with_receipts(
    guardian: Guardian, ports: PortPool, tmp_path: Path, more: str, kind: str
) -> None:
    async with standing(guardian, ports, described(tmp_path, *NAMES, more=more)) as deployment:
        assert await calls(deployment) == ALL
        before = await deployment.peer_link("gc-1", "mc-1", "grpc").counters()
        assert before.bytes_down  # the call went through this link
        assert not (await deployment.peer_link("gc-1", "mc-1").counters()).bytes_down  # and not through that of HTTP
        fault = await deployment.fault_plane().inject(Fault(kind, "gc-1-mc-1.grpc"))
        assert await calls(deployment) == ALL - {("gc-1", "mc-1")}
        proof = await fault.proof()
        assert proof.proven, proof.seen
        healed = await fault.heal()
        assert healed.proven, healed.seen
        assert await calls(deployment) == ALL


@pytest.mark.parametrize("url", ["", ".grpc"], ids=["http", "grpc"])
@pytest.mark.parametrize(
    "fault",
    [
        Fault("delay", "", {"seconds": 0.2}),
        Fault("rate", "", {"kilobytes": 20.0, "direction": "up"}),
        Fault("stall", ""),
        Fault("cut", ""),
        Fault("reset", ""),
    ],
    ids=lambda fault: fault.kind,
)
async def test_each_url_of_a_node_has_a_link_of_its_own(
    guardian: Guardian, ports: PortPool, tmp_path: Path, url: str, fault: Fault
) -> None:
    async with standing(guardian, ports, described(tmp_path, "gc-1")) as deployment:
        plane = deployment.fault_plane()
        await proven(deployment, Fault(fault.kind, f"gc-1-client{url}", fault.options))
        struck = await plane.inject(Fault("cut", "gc-1-client"))
        assert await say(await plane.client_url("gc-1", "grpc"), "hello") == "hello"
        await struck.heal()


async def test_a_link_to_each_sentinel(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with standing(guardian, ports, described(tmp_path, "gc-1")) as deployment:
        watched = await StoreSet.start(guardian, ports, StorePlan("sentinel", 1, 3, 2, 5.0, 30.0, "watched"), "watched")
        urls = [f"redis://127.0.0.1:{sentinel.port}" for sentinel in watched.sentinels]
        places = await deployment._links.to_sentinels("gc-1", urls)
        assert len({place.port for place in places} - {sentinel.port for sentinel in watched.sentinels}) == 3
        for kind in ("cut", "stall", "refuse"):
            await proven(deployment, Fault(kind, "gc-1-sentinel2"))
        await proven(deployment, Fault("delay", "gc-1-sentinel3", {"seconds": 0.2}))
        await watched.close()


@pytest.mark.parametrize("more", ["", THROUGH_PROXY], ids=["told", "through-the-gateway"])
async def test_a_link_to_a_stub_of_ours(
    guardian: Guardian, ports: PortPool, tmp_path: Path, more: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(guardian, ports, described(tmp_path, "gc-1", "mc-1", more=more)) as deployment:
        stub, port = None, ports.take()
        try:
            stub = await serve_grpc(port)
            url = await deployment._links.to_stub("mc-1", "gc", f"http://127.0.0.1:{port}", "grpc")
            if more:  # as the node would ask
                monkeypatch.setenv("http_proxy", deployment._links.proxies["mc-1"])
                monkeypatch.setenv("no_proxy", "")
            assert await say(url, "hello") == "hello"
            await proven(deployment, Fault("cut", "mc-1-stub.gc"))
            assert await deployment._links.to_stub("mc-1", "gc", f"http://127.0.0.1:{port}", "grpc") == url
            assert await say(url, "hello") == "hello"
        finally:
            if stub:
                await stub.stop(None)


async def test_a_node_that_comes_later_gets_links_and_a_proxy(
    guardian: Guardian, ports: PortPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with standing(guardian, ports, described(tmp_path, "a", "b", more=THROUGH_PROXY)) as deployment:
        links, urls = deployment._links, {name: dict(node.urls) for name, node in deployment.nodes.items()}
        port = ports.take()
        stub = await serve_grpc(port)
        standing_ports = {pair: link.port for pair, link in links.peers.items()}
        await links.between({**urls, "c": {"grpc": f"http://127.0.0.1:{port}"}}, through_proxy=True)
        assert {pair: links.peers[pair].port for pair in standing_ports} == standing_ports
        monkeypatch.setenv("no_proxy", "")
        for asking, asked in (("a", f"http://node-c.test:{port}"), ("c", _named(urls, "a"))):
            monkeypatch.setenv("http_proxy", links.proxies[asking])
            assert await say(asked, "hello") == "hello"
        await stub.stop(None)


def _named(urls: dict[str, dict[str, str]], node: str) -> str:
    return urls[node]["grpc"].replace("127.0.0.1", f"node-{node}.test")


@pytest.mark.parametrize("fault", [Fault("stall", "a-client.grpc"), Fault("delay", "a-client.grpc", {"seconds": 0.2})])
async def test_a_relay_that_does_nothing_to_grpc_is_found_out(
    guardian: Guardian, ports: PortPool, tmp_path: Path, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.chaos.relay.server.PROCESS", "tests.chaos.mutant_relay:main")
    async with standing(guardian, ports, described(tmp_path, "a")) as deployment:
        injected = await deployment.fault_plane().inject(fault)
        proof = await injected.proof()
        await injected.heal()
    assert not proof.proven, proof.seen


async def test_a_plain_run_has_links_of_both_kinds(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    """TCP links are served by the link process then, UDP links by a relay, as in scenarios."""

    async def start_links(guardian: Guardian, _: PortPool, name: str) -> LinkServer:
        return await LinkServer.start(guardian, name)

    async with standing(guardian, ports, described(tmp_path, "a", "b"), start_links) as deployment:
        for fault in (Fault("cut", "a-b.grpc"), Fault("stall", "a-client.grpc"), Fault("stall", "a-client.quic")):
            await proven(deployment, fault)
        assert await deployment.trouble() == ""
        assert len(deployment._links.pids()) == 2


async def test_proxies_of_the_operator_for_other_urls_are_joined(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with standing(guardian, ports, described(tmp_path, "gc-1", "mc-1")) as theirs:
        relay = await RelayServer.start(guardian, "theirs", ports.take())
        server = Toxiproxy(relay.url)
        urls = theirs.nodes["mc-1"].urls
        places = {key: url.partition("//")[2] for key, url in urls.items()}
        tcp = await server.create("their grpc", places["grpc"])
        udp = await server.create("their quic", places["quic"], protocol="udp")
        nodes = "".join(
            f'[[node]]\nname = "{node.name}"\n[node.urls]\n' + "".join(f'{k} = "{u}"\n' for k, u in node.urls.items())
            for node in theirs.nodes.values()
        )
        named = '"gc-1-mc-1.grpc" = "their grpc", "gc-1-mc-1.quic" = "their quic"'
        links = f'[links]\ntoxiproxy = "{relay.url}"\nproxies = {{ {named} }}\n'
        (tmp_path / "joined.toml").write_text(f'[target]\nname = "x"\nspec = "admission"\n{nodes}{links}')
        target = load(tmp_path / "joined.toml")
        assert {"link:gc-1-mc-1.grpc", "udp:gc-1-mc-1.quic"} <= {str(one) for one in offer_of(target).subjects}
        async with standing(guardian, ports, target) as joined:
            await proven(joined, Fault("delay", "gc-1-mc-1.grpc", {"seconds": 0.2}))
            await proven(joined, Fault("loss", "gc-1-mc-1.quic", {"share": 0.2}))
            await joined.opened("gc-1-mc-1.quic").link.stall()  # never healed by the test
        assert await udp.toxics() == await tcp.toxics() == []
        await server.close()


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("gc-1-mc-1.ftp", "mc-1 has no URL 'ftp'; it has http, grpc, quic, echo"),
        ("gc-1-mc-7", "no such link; write <node>-<node>"),
        ("gc-1-sentinel1", "no such link is open here; there are: gc-1-mc-1, gc-1-mc-1.grpc,"),
        ("client-gc-1", "named after the node first; write gc-1-client"),
    ],
)
async def test_a_link_that_is_not_there_is_refused_with_those_that_are(
    guardian: Guardian, ports: PortPool, tmp_path: Path, subject: str, said: str
) -> None:
    async with standing(guardian, ports, described(tmp_path, "gc-1", "mc-1")) as deployment:
        with pytest.raises(ValueError, match="there") as raised:
            await deployment.fault_plane().inject(Fault("cut", subject))
    assert said in str(raised.value)
