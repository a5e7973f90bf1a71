"""Startup (spec: --join semantics, mTLS requirement): what must hold before a node serves its first call.

A node starts in this order (`Node.run`, `Node.serve`), and each step needs the one before:

1. `check_startup`: settings that could only make an insecure or ambiguous member end the process. Joining other nodes
   takes a certificate with a SPIFFE server URI; `--tc-disable-auth` does not lift that.
2. `look_around`: ask the seeds for leader and terms. Seeds and self are the peer set as long as the list is empty.
   Once the list contains this node alone, it needs no other vote: a node that had not asked would elect itself at
   term 1, although its seeds know a leader.
3. `join`: announce to the seeds until one accepts, for at most half a leader lease; else end the process. A node that
   is among its own seeds skips this step: it may be the first of its cluster.
4. Write the own lease and read the peer set; only then listen and start the loops.

The bootstrap rule holds at startup only. Later failures to reach a seed never end a node.
"""

import asyncio
from typing import TYPE_CHECKING

from holdfast.reference.shared.settings import BadSetting

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

RETRY_SECONDS = 0.25


class Boot:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def others(self) -> tuple[str, ...]:
        return tuple(each for each in self.node.settings.join if each != self.node.settings.self_endpoint)

    def check_startup(self) -> None:
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
        settings = self.node.settings
        return bool(settings.join) and settings.self_endpoint not in settings.join

    async def look_around(self) -> None:
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
        replies = await asyncio.gather(*(self.node.loop.announce_to(target) for target in targets))
        return any(reply is not None for reply in replies)
