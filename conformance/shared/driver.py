"""The part of every driver that knows no protocol: control of the nodes' processes, their logs, and their addresses.

Each act on a process is in the transcript and returns when it happened, as an interval. `hang_up` is called before
a node is started again and after it was ended: a driver that keeps connections closes them there, because one to the
old process would fail the next call, which is not about connections.
"""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.check.context import Context
from holdfast.check.finding import Finding, NotApplicable, NotObservable
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.shared.ports import kept_port
from holdfast.conformance.shared.work import Work
from holdfast.target.deployment import Deployment, StartError


class Driver(Work):
    """One target as a check sees it: its nodes by name, and what can be done to them."""

    def __init__(self, context: Context, T: SpecTime, deployment: Deployment | None = None) -> None:
        super().__init__(context, T, deployment)
        self.nodes: list[str] = list(self.deployment.nodes)

    async def hang_up(self) -> None:
        """Closes the connections that this driver keeps; here there are none."""

    def others(self, *nodes: str) -> list[str]:
        return [node for node in self.nodes if node not in nodes]

    def url_of(self, node: str | None, *kinds: str) -> str:
        """Returns the node's URL of the first of these kinds that it has; of the first node if none is given."""
        urls = self.deployment.nodes[node or self.nodes[0]].urls
        for kind in kinds:
            if kind in urls:
                return urls[kind].rstrip("/")
        raise NotApplicable(f"the descriptor declares no {' or '.join(kinds)} URL")

    async def kill(self, node: str) -> Moment:
        """Kills the node; returns when."""
        asked = self.T.now()
        self.context.transcript.note(f"SIGKILL {node}")
        await self.deployment.nodes[node].kill()
        await self.hang_up()
        return Moment(asked.lo, time.monotonic())

    async def term(self, node: str, wait: float) -> tuple[int | None, Moment]:
        """Ends the node gracefully; returns its exit status (None if it still runs after `wait`), and when."""
        asked = self.T.now()
        self.context.transcript.note(f"SIGTERM {node}")
        status = await self.deployment.nodes[node].term(wait)
        said = f"still runs after {wait:.1f} s" if status is None else f"ended with {status}"
        self.context.transcript.note(f"{node} {said}")
        await self.hang_up()
        return status, Moment(asked.lo, time.monotonic())

    async def pause(self, node: str) -> None:
        self.context.transcript.note(f"SIGSTOP {node}")
        await self.deployment.nodes[node].pause()

    async def resume(self, node: str) -> None:
        self.context.transcript.note(f"SIGCONT {node}")
        await self.deployment.nodes[node].resume()

    async def restart(self, node: str, **settings: str) -> Moment:
        """Starts the node again with these settings; returns when. Raises Finding if it does not start.

        Raises NotObservable if the descriptor can't set them.
        """
        asked = self.T.now()
        try:
            await self._start(node, settings)
        except StartError as error:
            raise Finding([f"{node} to start"], str(error).partition(";")[0], _shown(settings), late=True) from error
        return Moment(asked.lo, time.monotonic())

    async def restart_fails(self, node: str, bound: str, **settings: str) -> tuple[str, Moment]:
        """Starts the node with settings that it must refuse; returns how it ended ("" if it serves), and when.

        Raises Finding if its process is still there at `T.never(bound)`.
        """
        began = self.T.now()
        try:
            await self._start(node, settings)
        except StartError as error:
            ending = str(error).partition(";")[0]
        else:
            return "", Moment(began.lo, time.monotonic())

        async def gone() -> bool:
            return self.deployment.nodes[node].pid is None

        left = began.lo + self.T.never(bound) - time.monotonic()
        await self.T.until(gone, give_up=max(left, self.look_every), what=f"{node} to end")
        self.context.transcript.note(ending)
        return ending, Moment(began.lo, time.monotonic())

    async def start_unready(
        self, node: str, serves: Callable[[], Awaitable[bool]], bound: str, *, what: str, **settings: str
    ) -> None:
        """Starts the node where the launcher can't see it become ready, and waits until it `serves`.

        Raises Finding as soon as its process has ended instead.
        """
        self._require_settings(settings)
        if self.deployment.nodes[node].pid:  # otherwise the old process might be the one that serves
            await self.kill(node)
        starting = self.beside(self._start(node, settings))

        async def up() -> bool:
            if starting.done() and isinstance(error := starting.exception(), StartError):
                raise Finding([what], str(error).partition(";")[0], _shown(settings), late=True) from error
            return await serves()

        await self.T.until(up, give_up=self.T.never(bound), what=what)
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)

    async def _start(self, node: str, settings: Mapping[str, str]) -> None:
        self._require_settings(settings)
        self.context.transcript.note(f"restart {node} {_shown(settings)}".rstrip())
        await self.hang_up()
        await self.deployment.nodes[node].restart(**settings)

    def _require_settings(self, settings: Mapping[str, str]) -> None:
        target = self.context.target
        missing = [name for name in settings if name not in target.settings]
        if settings and (missing or not target.startable):
            raise NotObservable(f"[[node]] start and [settings] {', '.join(missing or settings)}")

    def closed_port(self, scheme: str = "http") -> str:
        """Returns an endpoint at which nobody listens while the check runs."""
        return f"{scheme}://{self.context.target.harness['advertise']}:{kept_port(self.context)}"

    def free_port(self, scheme: str = "http") -> str:
        """Returns an endpoint at which a node can listen."""
        with socket.socket() as unused:
            unused.bind((self.context.target.harness["bind"], 0))
            return f"{scheme}://{self.context.target.harness['advertise']}:{unused.getsockname()[1]}"

    def log_of(self, node: str) -> list[str]:
        return list(self.deployment.nodes[node].log_lines())

    def events(self, **wanted: Any) -> list[dict[str, Any]]:
        """Returns the events of all nodes with these field values, in the order of each node's log."""
        return [record for node in self.deployment.nodes.values() for record in node.events(**wanted)]

    async def event(self, *, within: float, **wanted: Any) -> tuple[dict[str, Any], Moment]:
        """Waits for an event with these field values; returns it, and when. Raises Finding after `within` seconds."""
        name = " ".join(f"{key}={value}" for key, value in wanted.items())

        async def look() -> dict[str, Any] | None:
            return next(iter(self.events(**wanted)), None)

        return await self.T.until(look, give_up=within, what=f"the event {name}")


def _shown(settings: Mapping[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in settings.items())
