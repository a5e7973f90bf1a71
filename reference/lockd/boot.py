"""Startup (spec: --join semantics, mTLS requirement): what must hold before a node serves anybody."""

import asyncio
from typing import TYPE_CHECKING

from holdfast.reference.lockd.settings import BadSetting

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

RETRY_SECONDS = 0.25


class Boot:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def others(self) -> tuple[str, ...]:
        return tuple(each for each in self.node.settings.join if each != self.node.settings.self_endpoint)

    def check_startup(self) -> None:
        """Joining others takes an identity that they can verify; disabled checks do not lift that."""
        if self.others() and not self.has_identity():
            raise BadSetting(
                "--join names other nodes, which needs mTLS and a server certificate with spiffe://lockd/server/<node-id>."
            )
        settings = self.node.settings
        if settings.mtls and settings.self_endpoint.startswith("http://"):
            raise BadSetting(f"--self {settings.self_endpoint} must be https while mTLS is on.")

    def has_identity(self) -> bool:
        return self.node.settings.mtls and bool(self.node.leader_id)

    def must_join(self) -> bool:
        """The own endpoint among the seeds satisfies the check: the first node of a cluster finds nobody."""
        settings = self.node.settings
        return bool(settings.join) and settings.self_endpoint not in settings.join

    async def look_around(self) -> None:
        """Before the first own announce makes the list non-empty, seeds and self are the election's peers."""
        await self.node.election.look(self.node.settings.join)

    async def join(self) -> None:
        if not self.must_join():
            return
        clock = self.node.clock
        give_up = clock.monotonic() + self.node.settings.leader_ttl / 2
        while not await self.join_once(self.others()):
            if clock.monotonic() > give_up:
                raise BadSetting(f"No join target accepted the announce: {', '.join(self.others())}.")
            await asyncio.sleep(RETRY_SECONDS)

    async def join_once(self, targets: tuple[str, ...]) -> bool:
        failures = await asyncio.gather(*(self.node.loop.announce_to(target) for target in targets))
        return any(reply is not None for reply in failures)
