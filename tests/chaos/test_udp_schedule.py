"""UDP faults in schedules and storms: a QUIC client at work under five per cent of loss and a rebind."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.chaos.plane import Plane
from holdfast.chaos.schedules.offer import offer_of
from holdfast.chaos.schedules.schedule import Place, ScheduleError, Subject
from holdfast.chaos.schedules.storm import ScheduledStorm, load_for
from holdfast.fixtures.certs import CA, make_certificates
from holdfast.fixtures.deployment import StandingDeployment
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.target.fault import Fault, Strength, Window
from tests.chaos.wire_node import ALPN
from tests.chaos.wire_world import THROUGH_PROXY, described, standing

GRACE = 20.0
KEEP_ALIVE = 0.5
SCHEDULE = """
[schedule]
name = "five per cent, and a new port"
duration = "5s"

[[step]]
name = "lossy"
on = "udp:a-client.quic"
fault = "loss"
with = { share = 0.05 }
at = "500ms"
lasts = "3s"

[[step]]
name = "moved"
on = "udp:a-client.quic"
fault = "rebind"
after = "lossy"
since = "in-force"
at = "1s"
"""
UNSEEN = """
[[step]]
name = "gone"
on = "node:a"
fault = "kill"
at = "1s"
lasts = "1s"
"""


class Hands:
    """What a check does with the faults of a storm: put, prove, heal."""

    def __init__(self, deployment: StandingDeployment) -> None:
        self._plane = deployment.fault_plane()
        self._open: dict[int, Any] = {}
        self.windows: list[Window] = []

    async def inject(self, fault: Fault) -> Window:
        window = Window(fault, 0.0)
        self._open[id(window)] = await self._plane.inject(fault)
        self.windows.append(window)
        return window

    async def heal(self, window: Window) -> None:
        injected = self._open.pop(id(window))
        window.receipts += [await injected.proof(), await injected.heal()]


@contextlib.asynccontextmanager
async def quic_client(url: str, certificates: Path) -> AsyncIterator[Any]:
    from aioquic.asyncio.client import connect
    from aioquic.quic.configuration import QuicConfiguration

    configuration = QuicConfiguration(is_client=True, alpn_protocols=ALPN, server_name="localhost")
    configuration.load_verify_locations(str(make_certificates(certificates) / CA))
    async with connect("127.0.0.1", urlsplit(url).port or 0, configuration=configuration) as client:
        keeping = asyncio.ensure_future(keep_alive(client))
        try:
            yield client
        finally:
            keeping.cancel()


async def keep_alive(client: Any) -> None:
    """Ping now and then: after a rebind the server does not find a client that only waits for an answer."""
    while True:
        await asyncio.sleep(KEEP_ALIVE)
        await client.ping()


async def echoes(client: Any, until: asyncio.Event) -> int:
    """Let large and small messages be echoed until the event; return how many were."""
    count = 0
    while not until.is_set():
        data = b"%d" % count * 2000
        reader, writer = await client.create_stream()
        writer.write(data)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), GRACE) == data
        count += 1
    return count


async def test_quic_survives_a_schedule_of_loss_and_a_rebind(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    target = described(tmp_path, "a")
    (tmp_path / "schedule.toml").write_text(SCHEDULE)
    schedule = load_for(target, tmp_path / "schedule.toml")
    async with standing(guardian, ports, target) as deployment:
        hands, over = Hands(deployment), asyncio.Event()
        url = await deployment.fault_plane().client_url("a", "quic")
        async with quic_client(url, deployment._resources.certificates()) as client:
            working = asyncio.ensure_future(echoes(client, over))
            await Plane(deployment, schedule).storm(1, 1.0, 1.0, Strength()).run(hands.inject, hands.heal)
            over.set()
            assert await working > 3
    assert [window.fault.describe() for window in hands.windows] == [
        "loss a-client.quic share 0.05",
        "rebind a-client.quic",
    ]
    for window in hands.windows:
        assert window.proven, window.receipts
    assert "has gone on under another fault" in hands.windows[1].receipts[1].seen


def test_a_schedule_that_strikes_a_udp_link_and_its_node_at_once_is_refused(tmp_path: Path) -> None:
    (tmp_path / "schedule.toml").write_text(SCHEDULE + UNSEEN)
    with pytest.raises(ScheduleError, match=r"udp:a-client\.quic would be struck while gone is on the node behind it"):
        load_for(described(tmp_path, "a"), tmp_path / "schedule.toml")


def subjects(folder: Path, *names: str, more: str = "") -> set[str]:
    return {str(one) for one in offer_of(described(folder, *names, more=more)).subjects}


def test_a_target_offers_the_links_of_every_url(tmp_path: Path) -> None:
    assert subjects(tmp_path, "gc-1") == {
        "node:gc-1", "link:gc-1-client", "link:gc-1-client.grpc", "udp:gc-1-client.quic", "udp:gc-1-client.echo"
    }  # fmt: skip
    told = subjects(
        tmp_path,
        "gc-1",
        "mc-1",
        more='Q = "{nodes.mc-1.quic}"\nS = "{stub.ac} {sentinels}"\n[store]\nkind = "sentinel"\n',
    )
    assert {"link:gc-1-mc-1", "link:gc-1-mc-1.grpc", "udp:gc-1-mc-1.quic"} <= told
    assert {"link:mc-1-stub.ac", "link:gc-1-sentinel1", "link:mc-1-sentinel3"} <= told
    assert "udp:gc-1-mc-1.echo" not in told
    assert "udp:gc-1-mc-1.echo" in subjects(tmp_path, "gc-1", "mc-1", more=THROUGH_PROXY)


async def test_storms_draw_udp_faults_where_a_target_has_udp_links(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with standing(guardian, ports, described(tmp_path, "a", "b")) as deployment:
        drawn = [ScheduledStorm.drawn(deployment, seed, 30.0, 1.0, Strength()).schedule for seed in range(200)]
        places = [{step.on.place for step in schedule.steps} for schedule in drawn]
        assert not any({Place.UDP, Place.NODE} <= each for each in places)
        kinds = {step.fault for schedule in drawn for step in schedule.steps if step.on.place is Place.UDP}
        assert kinds == {"loss", "duplicate", "reorder", "corrupt", "rebind", "delay", "stall"}
        struck = {step.on for schedule in drawn for step in schedule.steps}
        assert {Subject(Place.UDP, "a-client.quic"), Subject(Place.LINK, "a-b.grpc")} <= struck
        assert Subject(Place.LINK, "a-client") not in struck  # clients of TCP do not use it


async def test_a_drawn_storm_of_udp_faults_is_proven(guardian: Guardian, ports: PortPool, tmp_path: Path) -> None:
    async with standing(guardian, ports, described(tmp_path, "a", "b")) as deployment:
        hands = Hands(deployment)
        storm = ScheduledStorm.drawn(deployment, 3, 60.0, 0.2, Strength(strikes=5))
        await storm.run(hands.inject, hands.heal)
    assert any(step.on.place is Place.UDP for step in storm.schedule.steps), storm.lines()
    for window in hands.windows:
        assert window.proven, (window.fault.describe(), window.receipts)
