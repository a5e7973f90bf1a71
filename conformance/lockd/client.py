"""The driver: our client side of the lockd protocol, and the only thing that checks talk through."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.calls import NEVER, Calls
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.deployment import StartError
from holdfast.finding import Finding, Inconclusive, NotObservable, expect
from holdfast.timeline import Moment

R = TypeVar("R")
# Each look is a call over TLS, so samples are taken less often than the kernel's own poll.
LOOK = 0.1
# And one at a whole cluster is six.
CLUSTER_LOOK = 0.25


class Lockd(Calls):
    """One target as a check sees it: its nodes, what they show, and waiting for it."""

    async def another(self) -> "Lockd":
        """The same on a further deployment."""
        twin = type(self)(self.context, self.T, await self.context.another())
        self.context.stack.push_async_callback(twin.hang_up)
        return twin

    # ------------------------------------------------------------- nodes

    @property
    def lone(self) -> str:
        """The node that has no other real member: spies on a cluster would change its quorum."""
        if len(self.nodes) == 1:
            return self.nodes[0]
        if self.dialect.lone_node in self.nodes:
            return self.dialect.lone_node
        raise NotObservable("[[node]] start, or [dialect] lone_node: a node that has no other real member")

    async def kill(self, node: str) -> Moment:
        asked = time.monotonic()
        self.context.transcript.note(f"SIGKILL {node}")
        await self.deployment.nodes[node].kill()
        await self.hang_up()
        return Moment(asked, time.monotonic())

    async def term(self, node: str, wait: float) -> tuple[int | None, Moment]:
        asked = time.monotonic()
        self.context.transcript.note(f"SIGTERM {node}")
        status = await self.deployment.nodes[node].term(wait)
        self.context.transcript.note(f"{node} ended with {status}")
        await self.hang_up()
        return status, Moment(asked, time.monotonic())

    async def pause(self, node: str) -> None:
        self.context.transcript.note(f"SIGSTOP {node}")
        await self.deployment.nodes[node].pause()

    async def resume(self, node: str) -> None:
        self.context.transcript.note(f"SIGCONT {node}")
        await self.deployment.nodes[node].resume()

    async def restart(self, node: str, **settings: str) -> Moment:
        """Start the node again; what it needs for that, the descriptor's [settings] must be able to say."""
        self._insist_on_settings(settings)
        asked = time.monotonic()
        self.context.transcript.note(f"restart {node} {_shown(settings)}")
        await self.hang_up()
        try:
            await self.deployment.nodes[node].restart(**settings)
        except StartError as error:
            raise Finding([f"{node} to start"], str(error).partition(";")[0], _shown(settings), late=True) from error
        return Moment(asked, time.monotonic())

    async def restart_fails(self, node: str, **settings: str) -> tuple[str, Moment]:
        """Start the node in a way in which it must refuse to run; how it ended, or "" if it serves or still runs."""
        self._insist_on_settings(settings)
        began = self.T.now()
        self.context.transcript.note(f"restart {node} {_shown(settings)}")
        await self.hang_up()
        try:
            await self.deployment.nodes[node].restart(**settings)
        except StartError as error:
            ending = str(error).partition(";")[0]

            async def gone() -> bool:
                return self.deployment.nodes[node].pid is None

            left = began.lo + self.T.startup_exit_max * NEVER - time.monotonic()
            await self.T.until(gone, give_up=max(left, LOOK), what=f"{node} to end")
            self.context.transcript.note(ending)
            return ending, Moment(began.lo, time.monotonic())
        return "", Moment(began.lo, time.monotonic())

    async def start_beside(self, node: str, url: str, **settings: str) -> None:
        """Start the node where the launcher does not look for it: at another port, or in clear text."""
        self._insist_on_settings(settings)
        if self.deployment.nodes[node].pid:  # else it might be the old process that serves
            await self.kill(node)
        self.context.transcript.note(f"restart {node} {_shown(settings)}")
        await self.hang_up()
        starting = self.beside(self.deployment.nodes[node].restart(**settings))

        async def serves() -> bool:
            return await self._healthy(url)

        await self.T.until(serves, give_up=self.T.startup_exit_max, what=f"{node} to serve {url}")
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)

    async def _healthy(self, url: str) -> bool:
        return (await self.call(wire.Request("GET", self.dialect.health), url=url)).ok

    async def detour(self, node: str) -> str:
        """Another endpoint of the same node: a link of ours that leads to its port."""
        kind = "https" if "https" in self.deployment.nodes[node].urls else "http"
        _, url = await self.deployment.client_link(node, kind)
        return url

    def closed_port(self) -> str:
        """An endpoint at which nobody listens."""
        with socket.socket() as unused:
            unused.bind((self.context.target.harness["bind"], 0))
            return f"https://{self.context.target.harness['advertise']}:{unused.getsockname()[1]}"

    def _insist_on_settings(self, settings: Mapping[str, str]) -> None:
        target = self.context.target
        missing = [name for name in settings if name not in target.settings]
        if settings and (missing or not target.startable):
            raise NotObservable(f"[[node]] start and [settings] {', '.join(missing or settings)}")

    # ------------------------------------------------------------- looking

    async def leader(self, node: str | None = None) -> Answer:
        return await self.call(wire.leader(), node=node)

    async def valid_leader(self, node: str | None = None) -> Leader | None:
        answer = await self.leader(node)
        return answer.leader if answer.has_leader else None

    async def members(self, node: str | None = None) -> list[str]:
        answer = await self.call(wire.members(), node=node)
        expect(answer, wire.ok(), why="the member list")
        return answer.endpoints

    async def registered(self, node: str | None = None) -> dict[str, wire.Backend]:
        answer = await self.call(wire.backends(), node=node)
        expect(answer, wire.ok(), why="the RM registry")
        return answer.backends

    async def entries(self, backend: str, node: str | None = None) -> list[str]:
        found = (await self.registered(node)).get(backend)
        return sorted(found.endpoints) if found else []

    async def backend_of(self, node: str) -> str:
        """The node's own backend hash: the newest with its endpoint, since a memory store leaves old ones behind."""
        mine = self.endpoint(node)

        async def look() -> str | None:
            found = {h: b for h, b in (await self.registered(node)).items() if mine in b.endpoints}
            return max(found, key=lambda each: found[each].updated_at) if found else None

        backend, _ = await self.comes(look, "rm_listed_max", what=f"{node} to register itself")
        return backend

    def txn(self) -> str:
        return wire.xid(self.context.random.randbytes(12))

    async def recorded(self, txn: str, node: str | None = None) -> Answer:
        return await self.call(wire.replay(txn), node=node)

    # ------------------------------------------------------------- waiting

    async def comes(
        self,
        look: Callable[[], Awaitable[R | None]],
        bound: str,
        *,
        since: Moment | None = None,
        what: str,
        every: float = LOOK,
    ) -> tuple[R, Moment]:
        """Within our bound it is well, by twice of it late, and after that it does not come at all."""
        start = since or self.T.now()
        limit = self.T.timings.of(bound).seconds
        value, seen = await self.T.until(look, give_up=limit * NEVER, since=start, what=what, every=every)
        self.T.at_most(bound, since=start, seen=seen, what=what)
        return value, seen

    async def throughout(
        self, look: Callable[[], Awaitable[Any]], seconds: float, why: str, *, every: float = LOOK
    ) -> int:
        """Look again and again for so long; `look` raises what it finds. How often it was looked."""
        end, looks = time.monotonic() + seconds, 0
        self.context.say_waiting(why, seconds)
        with self.context.step(f"watch {seconds:.2f} s: {why}"):
            while time.monotonic() < end:
                await look()
                looks += 1
                await asyncio.sleep(every)
        if looks < 2:
            raise Inconclusive(f"only {looks} samples in {seconds:.1f} s: {why}")
        return looks

    async def leads(self, node: str, bound: str = "lease_settled_max", *, above: int = 0) -> tuple[Leader, Moment]:
        """Until the node reports itself as valid leader, at a term above this one."""
        mine = self.endpoint(node)

        async def look() -> Leader | None:
            found = await self.valid_leader(node)
            return found if found and found.endpoint == mine and found.term > above else None

        return await self.comes(look, bound, what=f"{node} to lead at a term above {above}")

    async def vote(self, candidate: str, term: int, ttl_ms: int, node: str) -> Answer:
        """A vote of a leaderless node. Its own rounds take its slot for moments, so that a refusal is tried again."""
        request = wire.acquire(candidate, self.url(node), term, ttl_ms)

        async def granted() -> Answer | None:
            answer = await self.call(request, node=node)
            expect(answer, wire.ok(granted=True), wire.refused("tc_lease_active"), why=f"a vote for {candidate}")
            return answer if answer.ok else None

        answer, _ = await self.T.until(granted, give_up=self.T.leader_ttl, what=f"a vote for {candidate} at {term}")
        return answer

    async def without_leader(self, node: str) -> Moment:
        """Until the node shows no valid leader."""

        async def look() -> bool:
            return await self.valid_leader(node) is None

        _, seen = await self.comes(look, "lease_settled_max", what=f"{node} to have no leader")
        return seen

    # ------------------------------------------------------------- clusters

    async def introduce(self, *nodes: str) -> None:
        """Every node's announce to every node, with its own certificate, instead of waiting for ticks."""
        for node in nodes:
            for other in nodes:
                await self.call(wire.announce(self.endpoint(node)), self.own(node), node=other)

    async def agreed(self, *nodes: str, bound: str = "cluster_leader_max", above: int = 0) -> tuple[Leader, Moment]:
        """Until these nodes have equal lists of exactly themselves and follow one valid leader."""
        wanted = sorted(self.endpoint(node) for node in nodes)

        async def look() -> Leader | None:
            lists = [await self.members(node) for node in nodes]
            if any(sorted(each) != wanted for each in lists):
                return None
            return await self.one_leader(*nodes, above=above)

        return await self.comes(look, bound, what="equal lists and one leader", every=CLUSTER_LOOK)

    async def one_leader(self, *nodes: str, above: int = 0) -> Leader | None:
        """The leader that all of these show, if they show the same one."""
        seen = [await self.valid_leader(node) for node in nodes]
        first = seen[0]
        same = {(each.id, each.endpoint, each.term) for each in seen if each}
        return first if first and None not in seen and len(same) == 1 and first.term > above else None

    async def cluster(self) -> tuple[list[str], Leader]:
        """All nodes, converged; and the leader they agree on."""
        await self.introduce(*self.nodes)
        leader, _ = await self.agreed(*self.nodes)
        return self.nodes, leader

    def at(self, endpoint: str) -> str:
        """The node at this endpoint."""
        for node in self.nodes:
            if self.endpoint(node) == endpoint:
                return node
        raise Finding([f"one of {', '.join(self.nodes)}"], endpoint, "the leader's endpoint")

    def others(self, *nodes: str) -> list[str]:
        return [node for node in self.nodes if node not in nodes]

    # ------------------------------------------------------------- side work

    async def parallel(self, work: Iterable[Callable[[], Awaitable[R]]]) -> list[R]:
        """All of them at once; where one finds something, the others end with the check."""
        tasks = [asyncio.ensure_future(call()) for call in work]
        for task in tasks:
            self.context.stack.push_async_callback(_end, task)
        return await asyncio.gather(*tasks)

    def beside(self, work: Coroutine[Any, Any, R]) -> asyncio.Task[R]:
        """Work that goes on beside the check, and ends with it at the latest."""
        task = asyncio.ensure_future(work)
        self.context.stack.push_async_callback(_end, task)
        return task

    def moment_of(self, wall_ms: float) -> Moment:
        """A time of the wire on our own clock."""
        at = wall_ms / 1000 - time.time() + time.monotonic()
        return Moment(at, at)

    def log_of(self, node: str) -> list[str]:
        return list(self.deployment.nodes[node].log_lines())


def moment(answer: Answer) -> Moment:
    """When what the answer tells of took effect: between the question and the answer."""
    return Moment(answer.sent, answer.received)


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def _shown(settings: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())
