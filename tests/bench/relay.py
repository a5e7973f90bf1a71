"""Our relay against a real Toxiproxy in the same run: round trip, throughput; and UDP against a direct socket pair."""

import asyncio
import socket
import statistics
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from holdfast.chaos.engines import relay_links, toxiproxy_links
from holdfast.chaos.toxiproxy import Proxy, Toxiproxy
from holdfast.fixtures.launcher import Command, Guardian, ready
from holdfast.fixtures.ports import PortPool

ROUNDS, TRIPS, MEGABYTES = 5, 1500, 128
DATAGRAM, DATAGRAMS, IN_FLIGHT = 1200, 20_000, 64
CHUNK = bytes(1 << 16)


@dataclass(frozen=True)
class Compared:
    added: float
    throughput: float
    datagrams: float
    datagrams_direct: float
    rounds: list[str]


def compare() -> Compared:
    """Raises StartError where there is no Toxiproxy to compare with."""
    guardian = Guardian.launch(preload=["holdfast.chaos.relay.process", "tests.bench.peers"])
    try:
        return asyncio.run(_compare(guardian))
    finally:
        guardian.close()


async def _compare(guardian: Guardian) -> Compared:
    await guardian.attach()
    ports = PortPool()
    tcp, udp = ports.take(), ports.take()
    for name, port in (("echo_tcp", tcp), ("echo_udp", udp)):
        process = await guardian.spawn(Command(python=f"tests.bench.peers:{name}", args=[str(port)]), name=name)
        if name == "echo_tcp":
            await ready(process, lambda: _listens(tcp), 10.0, what="its port")
    relay = await relay_links(0)(guardian, ports, "relay")
    real = await toxiproxy_links()(guardian, ports, "toxiproxy")
    through_relay = (await relay.open("tcp", "127.0.0.1", tcp, ports.take())).port
    through_real = (await real.open("tcp", "127.0.0.1", tcp, ports.take())).port
    datagrams = await _udp_proxy(relay.server, udp)  # type: ignore[attr-defined]  # a ProxyHost, by construction
    return await asyncio.to_thread(_measure, tcp, through_relay, through_real, udp, datagrams.port)


async def _listens(port: int) -> bool:
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    return True


async def _udp_proxy(server: Toxiproxy, port: int) -> Proxy:
    return await server.create("udp", f"127.0.0.1:{port}", protocol="udp")


def _measure(direct: int, relay: int, real: int, udp: int, udp_relay: int) -> Compared:
    added, moved, sent, sent_direct, rounds = [], [], [], [], []
    for _ in range(ROUNDS):
        base, ours, theirs = (_trip(port) for port in (direct, relay, real))
        fast, peer = _throughput(relay), _throughput(real)
        through, pair = _datagrams(udp_relay), _datagrams(udp)
        added.append((ours - base) / max(theirs - base, 1e-6))
        moved.append(fast / peer)
        sent.append(through)
        sent_direct.append(pair)
        rounds.append(
            f"round trip {base * 1e6:.0f} µs direct, {ours * 1e6:.0f} relay, {theirs * 1e6:.0f} Toxiproxy; "
            f"{fast:.0f} MB/s against {peer:.0f}; {through:.0f} datagrams/s against {pair:.0f} direct"
        )
    middle = statistics.median
    return Compared(middle(added), middle(moved), middle(sent), middle(sent_direct), rounds)


def _trip(port: int) -> float:
    """Returns the median time of a single byte there and back."""
    with _connected(port) as sock:
        times = []
        for _ in range(TRIPS):
            began = time.perf_counter()
            sock.sendall(b"x")
            sock.recv(1)
            times.append(time.perf_counter() - began)
    return statistics.median(times)


def _throughput(port: int) -> float:
    """Returns echoed megabytes a second."""
    with _connected(port) as sock:
        total = MEGABYTES << 20
        began = time.perf_counter()
        writer = threading.Thread(target=_send_all, args=(sock, total))
        writer.start()
        received = 0
        while received < total:
            received += len(sock.recv(1 << 18))
        writer.join()
        return MEGABYTES / (time.perf_counter() - began)


def _send_all(sock: socket.socket, total: int) -> None:
    for _ in range(total // len(CHUNK)):
        sock.sendall(CHUNK)


def _datagrams(port: int) -> float:
    """Returns echoed datagrams a second, with IN_FLIGHT of them under way; after a timeout another one is sent."""
    payload = bytes(DATAGRAM)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.connect(("127.0.0.1", port))
        sock.settimeout(0.2)
        began, done = time.perf_counter(), 0
        for _ in range(IN_FLIGHT):
            sock.send(payload)
        while done < DATAGRAMS:
            try:
                sock.recv(2048)
                done += 1
            except TimeoutError:
                pass
            sock.send(payload)
        return DATAGRAMS / (time.perf_counter() - began)


@contextmanager
def _connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.settimeout(30)
        yield sock
