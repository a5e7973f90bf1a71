"""The fault plane of one deployment: puts faults in force, and brings the receipts that prove them.

What must hold: no fault without a receipt. `inject` returns once the fault was put in force; the object that it returns
proves the fault while it lasts (`proof`) and proves its end (`heal`). A verdict under a fault without proof is
`inconclusive`, since the fault may never have been there.

The subject of a fault says who puts it: `redis` the store faults, the name of a node the node faults, and the name of a
link (`a-b.grpc`, see `holdfast.target.link_urls`) the link faults. Proofs are

- on a TCP link (`delay`, `rate`, `stall`, `lose`, `refuse`, `cut`, `reset`): canaries through the same link, one
  connected before the fault and one under it. They ask what the far end speaks: HTTP, TLS, gRPC, Redis or Sentinel;
- on a UDP link (`loss`, `duplicate`, `reorder`, `corrupt`, `rebind`, `delay`, `rate`, `stall`): the same with many
  numbered datagrams, QUIC or plain, and the counters of the relay;
- on a node (`kill`, `term`, `stop`, `restart`): what /proc says about its process; for `clock`, the date of its
  answers;
- on the store (`down`, `empty`, `frozen`, `slow`, `failover`, `replica-lost`): what it answers.

The plane owns only the links between our clients and the nodes, one for each URL, opened on first use; all else is the
deployment's.
"""

from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from holdfast.chaos.faults.datagram_canary import datagram_question
from holdfast.chaos.faults.datagrams import DatagramFault
from holdfast.chaos.faults.link import LinkFault
from holdfast.chaos.faults.node import Killed, Restarted, Skewed, Stopped, Terminated
from holdfast.chaos.faults.questions import question_of
from holdfast.chaos.faults.store import FailedOver, ReplicaLost, StoreDown, StoreFrozen, Together
from holdfast.chaos.proxied import DatagramLink
from holdfast.chaos.schedules.schedule import Schedule
from holdfast.chaos.schedules.storm import ScheduledStorm
from holdfast.check.finding import NotObservable
from holdfast.target.deployment import Deployment, Node, OpenedLink
from holdfast.target.fault import Fault, Injected, Storm, Strength
from holdfast.target.link_urls import CLIENT, REDIS, Wire, link_name, main_key


class Plane:
    """Implements `holdfast.target.fault.FaultPlane`; a `schedule` replaces the draw of storms."""

    def __init__(self, deployment: Deployment, schedule: Schedule | None = None) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._client_links: dict[tuple[str, str], tuple[OpenedLink, str]] = {}

    async def client_url(self, node: str, url: str = "") -> str:
        return (await self._client_link(node, url))[1]

    async def inject(self, fault: Fault) -> Injected:
        if fault.subject == "redis":
            return await self._on_store(fault)
        if fault.subject in self._deployment.nodes:
            return await self._on_node(fault, self._deployment.nodes[fault.subject])
        return await (await self._on_link(fault)).put()

    async def _on_link(self, fault: Fault) -> LinkFault | DatagramFault:
        nodes = {name: node.urls for name, node in self._deployment.nodes.items()}
        try:
            name = link_name(fault.subject, nodes)
        except ValueError as error:
            raise ValueError(
                f"{fault.describe()}: there is no {fault.subject}; name redis, a node or a link of "
                f"{', '.join(nodes)} ({error})"
            ) from None
        if name.end == REDIS:
            return self._on_store_link(fault, name.node)
        if name.end == CLIENT:
            opened, _ = await self._client_link(name.node, name.url)
        else:
            opened = self._deployment.opened(fault.subject)
        if isinstance(opened.link, DatagramLink):
            return DatagramFault(fault, opened.link, partial(datagram_question, opened.wire))
        return LinkFault(fault, opened.link, question_of(opened.wire, fault.kind), None)

    def _on_store_link(self, fault: Fault, node: str) -> LinkFault:
        port = urlsplit(self._deployment.store_url).port
        return LinkFault(fault, self._deployment.link(node), question_of(Wire.REDIS, fault.kind), port)

    def storm(self, seed: int, seconds: float, scale: float, strength: Strength) -> Storm:
        if self._schedule is not None:  # the user's own, given by --schedule
            return ScheduledStorm.of(self._schedule, scale)
        return ScheduledStorm.drawn(self._deployment, seed, seconds, scale, strength)

    async def _client_link(self, node: str, url: str) -> tuple[OpenedLink, str]:
        urls = self._deployment.nodes[node].urls
        if not urls or (url and url not in urls):
            raise ValueError(f"{node} has no URL {url!r} to put a link in front of; it has {', '.join(urls) or 'none'}")
        key = url or main_key(urls)
        if (node, key) not in self._client_links:
            self._client_links[node, key] = await self._deployment.open_client_link(node, key)
        return self._client_links[node, key]

    async def _on_node(self, fault: Fault, node: Node) -> Injected:
        match fault.kind:
            case "kill":
                return await Killed.put(node)
            case "term":
                return await Terminated.put(node)
            case "stop":
                return await Stopped.put(node.name, node.pause, node.resume, lambda: node.pid)
            case "restart":
                return await Restarted.put(node)
            case "clock":
                sign = -1 if fault.options.get("direction") == "behind" else 1
                return await Skewed.put(node, sign * float(fault.options["seconds"]))
        raise ValueError(f"{fault.describe()}: a node knows kill, term, stop, restart and clock")

    async def _on_store(self, fault: Fault) -> Injected:
        deployment, store = self._deployment, self._deployment.store
        if store is None:
            raise NotObservable("[[node]] start with {redis}, and no Redis of your own")
        match fault.kind:
            case "down" | "empty":
                return await StoreDown.put(store, empty=fault.kind == "empty")
            case "frozen":
                return await StoreFrozen.put(store)
            case "slow":
                delay = replace(fault, kind="delay")
                return await Together.put([self._on_store_link(delay, node) for node in deployment.nodes])
            case "failover":
                return await FailedOver.put(deployment, [deployment.link(node) for node in deployment.nodes])
            case "replica-lost":
                return await ReplicaLost.put(deployment)
        raise ValueError(f"{fault.describe()}: the store knows down, empty, frozen, slow, failover and replica-lost")
