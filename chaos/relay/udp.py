"""The UDP transport of a proxy: one flow for each client address, with a connected socket of its own to the upstream.

    client ──► listening socket ──► Lane up (toxics) ──► the flow's socket ──► upstream
    client ◄── listening socket ◄── Lane down (toxics) ◄── the flow's socket ◄── upstream

The transport owns the listening socket and the flows, by client address; a flow owns its socket and its two lanes. A
flow begins with the first datagram of a client. It ends when it has been silent for the idle time, by a `timeout`
toxic, a reset, or when the proxy is disabled. Since UDP has no connections, an ended flow is simply forgotten: the next
datagram of that client begins a new one, from a new source port. `rebind` changes the source port and keeps the flow.

A toxic may rebind or forget its own flow while a batch of datagrams is being read, so the reader checks after each
datagram whether the socket is still the flow's.

An upstream that is an address is connected at once. A name is looked up first; up to 64 datagrams wait for that.

Datagrams are never split or merged. What can't be sent is dropped and counted, as by any router. Every change of toxics
is in force on every flow when the call returns.

Sockets are read directly, up to 64 datagrams per wake-up: asyncio's transports read one datagram per turn of the loop,
which costs most of the throughput.
"""

import asyncio
import ipaddress
import socket
import time
from collections.abc import Callable
from typing import Any

from holdfast.chaos.relay.address import Address, AddressError, bind, bound, split
from holdfast.chaos.relay.datagrams import Datagrams
from holdfast.chaos.relay.draws import Generators
from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.toxic import DOWNSTREAM, UPSTREAM, Toxic
from holdfast.chaos.relay.traffic import Traffic

BATCH = 64
LARGEST = 65_535
BUFFER = 4 << 20  # asked for; the kernel gives what it allows
EARLY_LIMIT = 64  # datagrams that wait while the upstream's name is looked up
IDLE = 60.0
SWEEPS = 4  # how often idle flows are looked for within one idle time


class Lane:
    """One direction of a flow: its toxics in order, then the socket."""

    def __init__(self, flow: "UdpFlow", stream: str, out: Callable[[bytes], None]) -> None:
        self.traffic = flow.transport.traffic[stream]
        self._flow = flow
        self._stream = stream
        self._out = out
        self._stages: list[Datagrams] = []
        for toxic in flow.transport.toxics:
            if toxic.direction == stream:
                self.add(toxic)

    def put(self, data: bytes) -> None:
        """Let a datagram pass through the toxics. It counts as received here, and as sent where the socket takes it."""
        self.traffic.received += len(data)
        if self._stages:
            self._stages[0].put(data)
        else:
            self._out(data)

    def add(self, toxic: Toxic) -> None:
        """Put a toxic behind all others; it begins at once, with a draw whether it hits this flow."""
        kind = self._flow.transport.effects.udp(toxic)
        stage = kind(toxic, self._flow.rngs[self._stream], Control(self._flow, self.traffic))
        self._stages.append(stage)
        self._join()
        stage.start()

    def update(self, toxic: Toxic) -> None:
        for stage in self._stages:
            if stage.toxic is toxic:
                stage.restart()

    def remove(self, toxic: Toxic) -> None:
        """Take a toxic out; what it holds is sent to the one behind it first."""
        for stage in [stage for stage in self._stages if stage.toxic is toxic]:
            stage.stop()
            self._stages.remove(stage)
        self._join()

    def dispose(self) -> None:
        """End all toxics with the flow; unlike one that is removed they send nothing more."""
        for stage in self._stages:
            stage.dispose()

    def _join(self) -> None:
        """Tell each toxic where its datagrams go: to the next one, and from the last to the socket."""
        for index, stage in enumerate(self._stages):
            last = index + 1 == len(self._stages)
            stage.next = self._out if last else self._stages[index + 1].put


class Control:
    """What toxics of one direction may do to their flow."""

    def __init__(self, flow: "UdpFlow", traffic: Traffic) -> None:
        self.dropped = traffic.drop
        self.altered = traffic.alter
        self.rebind = flow.rebind
        self.forget = flow.forget


class UdpFlow:
    """The datagrams of one client, in both directions. `number` and the proxy's seed determine its draws."""

    def __init__(self, transport: "UdpTransport", client: Any, number: int) -> None:
        self.transport = transport
        self.used = time.monotonic()
        self._client = client
        self.rngs = Generators(transport.seed, number)
        self._early: list[bytes] = []  # until the name of the upstream is looked up
        self._sock: socket.socket | None = None
        self._looking_up: asyncio.Task[None] | None = None
        self.up = Lane(self, UPSTREAM, self._send_up)
        self.down = Lane(self, DOWNSTREAM, self._send_down)

    def lane(self, stream: str) -> Lane:
        return self.up if stream == UPSTREAM else self.down

    def connect(self) -> None:
        """Connect to the upstream: at once to an address, to a name as soon as it is looked up."""
        host, port = split(self.transport.upstream)
        try:
            ipaddress.ip_address(host)
        except ValueError:
            self._looking_up = asyncio.get_running_loop().create_task(self._look_up(host or "localhost", port))
        else:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._attach(family, (host, int(port)))

    def rebind(self) -> None:
        """Take a new source port; datagrams that are still sent to the old one are lost."""
        if self._sock is None:
            return
        self._attach(self._sock.family, self._sock.getpeername())
        self.transport.rebinds += 1

    def forget(self) -> None:
        """End the flow; the client's next datagram begins a new one."""
        self.transport.flows.pop(self._client, None)
        self.close()

    def close(self) -> None:
        """End whatever the flow has begun. What its toxics hold is not sent any more."""
        if self._looking_up is not None:
            self._looking_up.cancel()
        self.up.dispose()
        self.down.dispose()
        self._detach()

    async def _look_up(self, host: str, port: str) -> None:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            self._attach(found[0][0], found[0][4])
        except (OSError, UnicodeError):
            self.transport.refused += 1
            self.forget()
            return
        for data in self._early:
            self._send_up(data)
        self._early.clear()

    def _attach(self, family: int, upstream: Any) -> None:
        """Take a new socket in place of the old one, which stays if the new one can't be connected."""
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
            sock.connect(upstream)
        except BaseException:
            sock.close()
            raise
        self._detach()
        self._sock = sock
        self._watch(sock)

    def _watch(self, sock: socket.socket) -> None:
        if self._sock is sock:
            loop = asyncio.get_running_loop()
            loop.remove_reader(sock.fileno())
            loop.add_reader(sock.fileno(), self._readable, sock)

    def _nobody_there(self, sock: socket.socket) -> None:
        """Watch the socket again after an ICMP error, which is not passed on: uvloop stops watching after an error."""
        asyncio.get_running_loop().call_soon(self._watch, sock)

    def _detach(self) -> None:
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def _readable(self, sock: socket.socket) -> None:
        self.used = time.monotonic()
        for _ in range(BATCH):
            try:
                data = sock.recv(LARGEST)
            except BlockingIOError:
                return
            except OSError:
                self._nobody_there(sock)
                continue
            self.down.put(data)
            if self._sock is not sock:  # a toxic has just rebound or forgotten the flow
                return

    def _send_up(self, data: bytes) -> None:
        if self._sock is not None:
            self.transport.sent(UPSTREAM, data, self._send)
        elif len(self._early) < EARLY_LIMIT:
            self._early.append(data)
        else:
            self.up.traffic.drop(data)

    def _send(self, data: bytes) -> int:
        assert self._sock is not None
        try:
            return self._sock.send(data)
        except ConnectionRefusedError:  # reports an earlier datagram; this one was not sent yet
            self._nobody_there(self._sock)
            return self._sock.send(data)

    def _send_down(self, data: bytes) -> None:
        self.transport.send_down(data, self._client)


class UdpTransport:
    """Every verb is in force on every flow when it returns."""

    network = "udp"

    def __init__(self, upstream: str, toxics: list[Toxic], effects: Effects, seed: str, idle: float = IDLE) -> None:
        self.upstream = upstream
        self.strict = False
        self.toxics = toxics
        self.effects = effects
        self.seed = seed
        self.traffic = {UPSTREAM: Traffic(), DOWNSTREAM: Traffic()}
        self.flows: dict[Any, UdpFlow] = {}
        self.opened = self.refused = self.rebinds = 0
        self._idle = idle
        self._sock: socket.socket | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    def open(self, address: Address) -> Address:
        self._sock = bind(address, self.network)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER)
        asyncio.get_running_loop().add_reader(self._sock.fileno(), self._readable, self._sock)
        self._sweep_later()
        return bound(self._sock)

    async def stop(self) -> None:
        """Forget all flows and close the port. The toxics stay: an enabled proxy has them again."""
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._forget_all()
        if self._sock is not None:
            asyncio.get_running_loop().remove_reader(self._sock.fileno())
            self._sock.close()
            self._sock = None

    def add(self, toxic: Toxic) -> None:
        for flow in list(self.flows.values()):
            flow.lane(toxic.direction).add(toxic)

    def update(self, toxic: Toxic) -> None:
        for flow in list(self.flows.values()):
            flow.lane(toxic.direction).update(toxic)

    def remove(self, toxic: Toxic) -> None:
        for flow in list(self.flows.values()):
            flow.lane(toxic.direction).remove(toxic)

    async def reset(self) -> int:
        """Forget every flow; the upstream sees each client come again from a new port."""
        return self._forget_all()

    def rebind(self) -> int:
        """Give every flow a new source port, as a NAT does that lost its table; return how many flows there are."""
        for flow in self.flows.values():
            flow.rebind()
        return len(self.flows)

    # Under the names that TCP has, so that a client of the API reads one form: a flow is UDP's connection.
    def tally(self) -> dict[str, dict[str, int]]:
        flows = {"opened": self.opened, "open": len(self.flows), "refused": self.refused, "rebinds": self.rebinds}
        return {"connections": flows} | {stream: traffic.shown() for stream, traffic in self.traffic.items()}

    def send_down(self, data: bytes, client: Any) -> None:
        sock = self._sock
        if sock is not None:
            self.sent(DOWNSTREAM, data, lambda one: sock.sendto(one, client))

    def sent(self, stream: str, data: bytes, send: Callable[[bytes], int]) -> None:
        traffic = self.traffic[stream]
        try:
            send(data)
        except OSError:  # the kernel has no room, or nobody listens there
            traffic.drop(data)
        else:
            traffic.bytes += len(data)
            traffic.chunks += 1

    def _readable(self, sock: socket.socket) -> None:
        now = time.monotonic()
        for _ in range(BATCH):
            try:
                data, client = sock.recvfrom(LARGEST)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error: an answer was sent to a client that had closed its port
                continue
            flow = self.flows.get(client) or self._new_flow(client)
            if flow is None:
                self.traffic[UPSTREAM].drop(data)
            else:
                flow.used = now
                flow.up.put(data)

    def _new_flow(self, client: Any) -> UdpFlow | None:
        """Begin the flow of a client; return None, counted as refused, when the upstream can't be connected."""
        self.opened += 1
        flow = UdpFlow(self, client, self.opened)
        try:
            flow.connect()
        except (OSError, ValueError, OverflowError, AddressError):  # the upstream can't be reached or means nothing
            self.refused += 1
            flow.close()
            return None
        self.flows[client] = flow
        return flow

    def _forget_all(self) -> int:
        flows = list(self.flows.values())
        for flow in flows:
            flow.forget()
        return len(flows)

    def _sweep_later(self) -> None:
        self._sweeper = asyncio.get_running_loop().call_later(self._idle / SWEEPS, self._sweep)

    def _sweep(self) -> None:
        """Forget the flows that were silent for the idle time; a flow may so live a quarter of that time longer."""
        limit = time.monotonic() - self._idle
        for flow in [flow for flow in self.flows.values() if flow.used < limit]:
            flow.forget()
        self._sweep_later()
