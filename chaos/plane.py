"""The fault plane of one deployment: puts faults in force, and has the receipts that prove them.

Link faults (`delay`, `stall`, `lose`, `refuse`, `cut`) are proven by canaries through the same link, one that stood
before and one opened under the fault. Process faults (`kill`, `term`, `stop`, `restart`) and faults of the store
(`down`, `frozen`, `empty`) by what /proc says and, for the store, by asking it; a `clock` by the node's own reading.
"""

from urllib.parse import urlsplit

from holdfast.chaos.canary import HttpQuestion, RedisQuestion
from holdfast.chaos.linkfaults import LinkFault
from holdfast.chaos.processes import Killed, Restarted, Skewed, Stopped, StoreDown, StoreFrozen, Terminated
from holdfast.chaos.schedule import Schedule
from holdfast.chaos.storm import ScheduledStorm
from holdfast.deployment import Deployment, Link, Node
from holdfast.fault import Fault, Injected, Storm


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
        node, _, way = fault.subject.rpartition("-")
        if way == "redis":
            port = urlsplit(self._deployment.store_url).port
            return await LinkFault(fault, self._deployment.link(node), RedisQuestion, port).put()
        if way == "client":
            link, _ = await self._client_link(node)
            return await LinkFault(fault, link, HttpQuestion, None).put()
        return await self._on_node(fault, self._deployment.nodes[fault.subject])

    def storm(self, seed: int, seconds: float, scale: float) -> Storm:
        if self._schedule is not None:  # the user's own, instead of a draw
            return ScheduledStorm(self._schedule.scaled(scale))
        return ScheduledStorm.drawn(self._deployment, seed, seconds, scale)

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
                return await Skewed.put(node, float(fault.options["seconds"]))
        raise ValueError(f"{fault.describe()}: a node knows kill, term, stop, restart and clock")

    async def _on_store(self, fault: Fault) -> Injected:
        store = self._deployment.store
        if store is None:
            raise ValueError(f"{fault.describe()}: this deployment has no Redis of ours to break")
        match fault.kind:
            case "down" | "empty":
                return await StoreDown.put(store, empty=fault.kind == "empty")
            case "frozen":
                return await StoreFrozen.put(store)
        raise ValueError(f"{fault.describe()}: the store knows down, empty and frozen")
