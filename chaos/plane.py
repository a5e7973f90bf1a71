"""The fault plane of one deployment: puts faults in force, and has the receipts that prove them.

Link faults (`delay`, `stall`, `refuse`, `cut`, `rate`) are proven by canaries through the same link, one that stood
before and one opened under the fault. Process faults (`kill`, `term`, `stop`, `restart`) and faults of the store
(`down`, `frozen`, `empty`) by what /proc says and, for the store, by asking it; a `clock` by the node's own reading.
"""

import asyncio
import contextlib
import email.utils
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from holdfast.chaos.canary import Canary, Gone, HttpQuestion, Question, RedisQuestion, Seen
from holdfast.chaos.processes import started, state
from holdfast.deployment import Deployment, Link, Node, Store
from holdfast.fault import Fault, Injected, Receipt

# A stall or a stopped process is seen by silence of so long, where an answer takes a millisecond.
SILENCE = 0.3
# What is healed answers by then; a reconnect may have to wait for a retransmission.
HEALED = 5.0
TERM_PATIENCE = 60.0
CLOCK_TOLERANCE = 2.0


class Plane:
    """Made for one deployment; `<node>-client` links are opened when they are first asked for."""

    def __init__(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self._client_links: dict[str, tuple[Link, str]] = {}

    async def client_url(self, node: str) -> str:
        return (await self._client_link(node))[1]

    async def inject(self, fault: Fault) -> Injected:
        if fault.subject == "redis":
            return await self._on_store(fault)
        node, _, way = fault.subject.rpartition("-")
        if way == "redis":
            return await LinkFault.put(fault, self._deployment.link(node), RedisQuestion("holdfast:canary"))
        if way == "client":
            link, _ = await self._client_link(node)
            return await LinkFault.put(fault, link, HttpQuestion())
        return await self._on_node(fault, self._deployment.nodes[fault.subject])

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


# --------------------------------------------------------------------------------------------------------- links


class LinkFault:
    """One fault on one link, watched by a canary that stood there before."""

    def __init__(self, fault: Fault, link: Link, question: Question, before: Canary, calm: Seen) -> None:
        self._fault = fault
        self._link = link
        self._question = question
        self._before = before
        self._calm = calm

    @classmethod
    async def put(cls, fault: Fault, link: Link, question: Question) -> "LinkFault":
        before = Canary(link.port, question)
        calm = await before.ask(HEALED)
        await _apply(fault, link)
        return cls(fault, link, question, before, calm)

    async def proof(self) -> Receipt:
        if not self._calm.answered:
            return Receipt(f"{self._link.name}: {self._calm.describe()} even before the fault", proven=False)
        fresh = Canary(self._link.port, self._question)
        patience = self._patience()
        old, new = await asyncio.gather(self._before.ask(patience), fresh.ask(patience))
        fresh.close()
        proven = self._fits(old) and self._fits(new)
        return Receipt(
            f"{self._link.name}: {self._calm.describe()} before; under {self._fault.kind} on the connection that stood "
            f"{old.describe()}, on a new one {new.describe()}",
            proven,
        )

    async def heal(self) -> Receipt:
        await self._link.heal()
        self._before.close()
        seen = await _answers(self._link.port, self._question)
        return Receipt(f"{self._link.name}: healed, {seen.describe()}", seen.answered)

    def _patience(self) -> float:
        if self._fault.kind == "delay":
            return 2 * self._most() + HEALED
        return HEALED if self._fault.kind == "rate" else SILENCE

    def _fits(self, seen: Seen) -> bool:
        match self._fault.kind:
            case "delay":
                return seen.answered and seen.seconds >= self._least()
            case "stall":
                return not seen.answered and not seen.gone
            case "rate":
                return seen.answered
        return seen.gone  # refuse, cut

    def _ways(self) -> int:
        return 2 if self._fault.options.get("direction", "both") == "both" else 1

    def _least(self) -> float:
        seconds, jitter = (float(self._fault.options.get(name, 0.0)) for name in ("seconds", "jitter"))
        return self._ways() * (seconds - jitter) * 0.98

    def _most(self) -> float:
        seconds, jitter = (float(self._fault.options.get(name, 0.0)) for name in ("seconds", "jitter"))
        return self._ways() * (seconds + jitter)


async def _apply(fault: Fault, link: Link) -> None:
    options = fault.options
    direction = str(options.get("direction", "both"))
    match fault.kind:
        case "delay":
            await link.delay(float(options["seconds"]), float(options.get("jitter", 0.0)), direction)
        case "stall":
            await link.stall(direction)
        case "refuse":
            await link.refuse()
        case "cut":
            await link.cut()
        case _:
            raise ValueError(f"{fault.describe()}: a link knows delay, stall, refuse and cut")


async def _answers(port: int, question: Question) -> Seen:
    """Asked until there is an answer, since what listens there may just be coming back."""
    end = time.monotonic() + HEALED
    while True:
        canary = Canary(port, question)
        seen = await canary.ask(max(0.1, end - time.monotonic()))
        canary.close()
        if seen.answered or time.monotonic() > end:
            return seen
        await asyncio.sleep(0.02)


# --------------------------------------------------------------------------------------------------------- processes


@dataclass(frozen=True)
class Stopped:
    """SIGSTOP: /proc shows T until SIGCONT."""

    name: str
    resume: Callable[[], Awaitable[None]]
    pid: Callable[[], int | None]

    @classmethod
    async def put(
        cls,
        name: str,
        pause: Callable[[], Awaitable[None]],
        resume: Callable[[], Awaitable[None]],
        pid: Callable[[], int | None],
    ) -> "Stopped":
        await pause()
        return cls(name, resume, pid)

    async def proof(self) -> Receipt:
        seen = await _state_becomes(self.pid, "T")
        return Receipt(f"{self.name}: /proc shows {seen or 'no process'} (T is stopped)", seen == "T")

    async def heal(self) -> Receipt:
        await self.resume()
        seen = state(self.pid())
        return Receipt(f"{self.name}: continued, /proc shows {seen or 'no process'}", seen not in ("", "T"))


async def _state_becomes(pid: Callable[[], int | None], wanted: str) -> str:
    """A stop is carried out at the process's next step into the kernel, a moment after the signal."""
    for _ in range(50):
        if state(pid()) == wanted:
            return wanted
        await asyncio.sleep(0.01)
    return state(pid())


@dataclass
class Killed:
    """SIGKILL; healing is to start the node again."""

    node: Node
    pid: int | None
    born: int

    @classmethod
    async def put(cls, node: Node) -> "Killed":
        pid = node.pid
        born = started(pid)
        await node.kill()
        return cls(node, pid, born)

    async def proof(self) -> Receipt:
        gone = started(self.pid) != self.born
        return Receipt(f"{self.node.name}: process {self.pid} is {'gone' if gone else 'still there'}", gone)

    async def heal(self) -> Receipt:
        await self.node.restart()
        return Receipt(f"{self.node.name}: started again as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


class Terminated(Killed):
    @classmethod
    async def put(cls, node: Node) -> "Terminated":
        pid = node.pid
        born = started(pid)
        await node.term(TERM_PATIENCE)
        return cls(node, pid, born)


class Restarted(Killed):
    """Gone and back at once."""

    @classmethod
    async def put(cls, node: Node) -> "Restarted":
        pid = node.pid
        born = started(pid)
        await node.restart()
        return cls(node, pid, born)

    async def heal(self) -> Receipt:
        return Receipt(f"{self.node.name}: runs as {self.node.pid}", state(self.node.pid) not in ("", "Z"))


@dataclass
class Skewed:
    """A node restarted with its clock so many seconds off; what its answers are dated tells."""

    node: Node
    seconds: float

    @classmethod
    async def put(cls, node: Node, seconds: float) -> "Skewed":
        await node.restart(clock_offset=f"{seconds:g}")
        return cls(node, seconds)

    async def proof(self) -> Receipt:
        return await self._reading(self.seconds)

    async def heal(self) -> Receipt:
        await self.node.restart(clock_offset="0")
        return await self._reading(0.0)

    async def _reading(self, wanted: float) -> Receipt:
        off = await clock_of(self.node.urls["http"])
        if off is None:
            return Receipt(f"{self.node.name}: its answers are not dated", proven=False)
        fits = abs(off - wanted) <= CLOCK_TOLERANCE
        return Receipt(f"{self.node.name}: its clock is {off:+.0f} s off, {wanted:+.0f} s was asked for", fits)


async def clock_of(url: str) -> float | None:
    """How far the clock that dates a node's answers is ahead of ours, in whole seconds."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: canary\r\nConnection: close\r\n\r\n")
        async with asyncio.timeout(HEALED):
            head = (await reader.read()).partition(b"\r\n\r\n")[0].decode("latin-1")
    finally:
        writer.close()
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "date":
            return email.utils.parsedate_to_datetime(value.strip()).timestamp() - time.time()
    return None


# --------------------------------------------------------------------------------------------------------- the store


@dataclass(frozen=True)
class StoreDown:
    """Redis killed; healing starts it again, with its data or without."""

    store: Store
    empty: bool
    port: int

    @classmethod
    async def put(cls, store: Store, *, empty: bool) -> "StoreDown":
        await (store.kill() if empty else store.stop(keep=True))
        return cls(store, empty, urlsplit(store.url).port or 6379)

    async def proof(self) -> Receipt:
        canary = Canary(self.port, RedisQuestion("holdfast:canary"))
        try:
            await canary.open()
        except Gone as seen:
            return Receipt(f"redis: {seen}", proven=True)
        finally:
            canary.close()
        return Receipt("redis: accepts connections although it was killed", proven=False)

    async def heal(self) -> Receipt:
        await self.store.restart(empty=self.empty)
        seen = await _answers(self.port, RedisQuestion("holdfast:canary"))
        return Receipt(f"redis: back{' without its data' if self.empty else ''}, {seen.describe()}", seen.answered)


@dataclass(frozen=True)
class StoreFrozen:
    """Redis stopped in its tracks: it accepts, through the kernel, and answers nothing."""

    store: Store
    port: int

    @classmethod
    async def put(cls, store: Store) -> "StoreFrozen":
        await store.pause()
        return cls(store, urlsplit(store.url).port or 6379)

    async def proof(self) -> Receipt:
        canary = Canary(self.port, RedisQuestion("holdfast:canary"))
        seen = await canary.ask(SILENCE)
        canary.close()
        return Receipt(f"redis: {seen.describe()} while frozen", not seen.answered and not seen.gone)

    async def heal(self) -> Receipt:
        with contextlib.suppress(ProcessLookupError):
            await self.store.resume()
        seen = await _answers(self.port, RedisQuestion("holdfast:canary"))
        return Receipt(f"redis: thawed, {seen.describe()}", seen.answered)
