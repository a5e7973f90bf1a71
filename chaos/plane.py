"""The fault plane of one deployment: puts faults in force, and has the receipts that prove them.

Link faults (`delay`, `rate`, `stall`, `lose`, `refuse`, `cut`, `reset`) are proven by canaries through the same link,
one that stood before and one opened under the fault; faults of a node (`kill`, `term`, `stop`, `restart`) by what /proc
says, its `clock` by its own reading; faults of the store (`down`, `empty`, `frozen`, `slow`, `failover`,
`replica-lost`) by asking it.
"""

from dataclasses import replace
from urllib.parse import urlsplit

from holdfast.chaos.canary import HttpQuestion, RedisEcho, RedisQuestion, TlsQuestion
from holdfast.chaos.linkfaults import LinkFault
from holdfast.chaos.processes import Killed, Restarted, Skewed, Stopped, Terminated
from holdfast.chaos.schedule import Schedule
from holdfast.chaos.storefaults import FailedOver, ReplicaLost, StoreDown, StoreFrozen, Together
from holdfast.chaos.storm import ScheduledStorm
from holdfast.deployment import Deployment, Link, Node
from holdfast.fault import Fault, Injected, Storm, Strength
from holdfast.finding import NotObservable
from holdfast.fixtures.ways import main_url


class Plane:
    """Made for one deployment; `<node>-client` links are opened when they are first asked for."""

    def __init__(self, deployment: Deployment, schedule: Schedule | None = None) -> None:
        self._deployment = deployment
        self._schedule = schedule
        self._client_links: dict[str, tuple[Link, str]] = {}

    async def client_url(self, node: str) -> str:
        return (await self._client_link(node))[1]

    async def inject(self, fault: Fault) -> Injected:
        if fault.subject == "redis":
            return await self._on_store(fault)
        if fault.subject in self._deployment.nodes:
            return await self._on_node(fault, self._deployment.nodes[fault.subject])
        return await (await self._on_link(fault)).put()

    async def _on_link(self, fault: Fault) -> LinkFault:
        node, _, way = fault.subject.rpartition("-")
        if node not in self._deployment.nodes:
            raise ValueError(f"{fault.describe()}: there is no {fault.subject}")
        if way == "redis":
            return self._on_way_to_store(fault, node)
        if way == "client":
            link, url = await self._client_link(node)
        else:
            link, url = self._deployment.peer_link(node, way), main_url(self._deployment.nodes[way].urls)
        return LinkFault(fault, link, TlsQuestion if url.startswith("https:") else HttpQuestion, None)

    def _on_way_to_store(self, fault: Fault, node: str) -> LinkFault:
        port = urlsplit(self._deployment.store_url).port
        question = RedisEcho if fault.kind == "rate" else RedisQuestion
        return LinkFault(fault, self._deployment.link(node), question, port)

    def storm(self, seed: int, seconds: float, scale: float, strength: Strength) -> Storm:
        if self._schedule is not None:  # the user's own, instead of a draw
            return ScheduledStorm(self._schedule.scaled(scale))
        return ScheduledStorm.drawn(self._deployment, seed, seconds, scale, strength)

    async def _client_link(self, node: str) -> tuple[Link, str]:
        if node not in self._client_links:
            self._client_links[node] = await self._deployment.client_link(node)
        return self._client_links[node]

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
                return await Together.put([self._on_way_to_store(delay, node) for node in deployment.nodes])
            case "failover":
                return await FailedOver.put(deployment, [deployment.link(node) for node in deployment.nodes])
            case "replica-lost":
                return await ReplicaLost.put(deployment)
        raise ValueError(f"{fault.describe()}: the store knows down, empty, frozen, slow, failover and replica-lost")
