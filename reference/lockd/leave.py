"""Leave (spec: Leave (self-only)): whose lease is removed, which peers hear of it, and what a leader owes when it goes.

The caller's certificate says whose lease is removed, and there are three cases:

- The lease of another identity: removed from the own store, and never sent on. The fan-out would carry this node's
  certificate, and the peers would remove this node instead.
- The own identity, without the guard header: this node is leaving and sends the leave to all members
  (`leave_everywhere`).
- The own identity, with the guard header: the call is part of a fan-out, so the node sends nothing on and only goes
  (`go`).

A leave by call is all or nothing towards the caller. Leadership and the own lease are kept until every member has
accepted the leave. If one of them does not, in three attempts, the answer is 503; the node announces at once, so that
the peers which had already removed it list it again. A stop cannot be refused: it tries each peer once, within
`STOP_LIMIT`, logs what failed, and goes.

Two flags silence the membership loop. `leaving` is set while the fan-out is under way: an announce in between would
undo at a peer what that peer has just accepted. `paused` is set once the node has left, and until its identity
announces again; it is not stored, so a restart ends it too.

Three locks keep the order:

- `changing` covers the own announce and the own removal, so that a tick which has begun cannot write the lease again
  after the removal;
- `Loop.peer_locks[peer]` covers each call to one peer, so that an announce under way arrives before the leave and not
  after;
- `_one_at_a_time` lets a second leave wait for the outcome of the first.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.reference.lockd.store import StoreUnavailable
from holdfast.reference.lockd.wire import Refusal

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

GUARD = "X-Lockd-TC-Leave-Fanout"
ATTEMPTS = 3
FIRST_BACKOFF = 0.1
STOP_LIMIT = 5.0


class Leave:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.paused = False
        self.leaving = False
        self.changing = asyncio.Lock()
        self._one_at_a_time = asyncio.Lock()

    def is_guarded(self, headers: Mapping[str, str]) -> bool:
        return bool(headers.get(GUARD, "").strip())

    def must_fan_out(self, identity: str, headers: Mapping[str, str]) -> bool:
        return identity == self.node.leader_id and not self.is_guarded(headers)

    def fan_out_targets(self, members: Sequence[str]) -> list[str]:
        return [each for each in members if each != self.node.settings.self_endpoint]

    def guard_headers(self) -> dict[str, str]:
        return {GUARD: "1"}

    async def requested(self, identity: str, headers: Mapping[str, str]) -> None:
        if identity != self.node.leader_id:
            await self.remove_other(identity)
        elif self.must_fan_out(identity, headers):
            async with self._one_at_a_time:
                await self.leave_everywhere()
        else:
            await self.go()

    async def remove_other(self, identity: str) -> None:
        await self.node.members.remove(identity)
        await self.membership_changed()

    async def leave_everywhere(self) -> None:
        self.leaving = True
        try:
            members = (await self.node.members.active()).endpoints
            failed = await self.fan_out_leave(self.fan_out_targets(members), ATTEMPTS)
            if failed:
                raise self.on_leave_failed(failed)
            await self.go()
        finally:
            self.leaving = False

    def on_leave_failed(self, failed: Mapping[str, str]) -> Refusal:
        self.node.loop.wake.set()
        detail = "; ".join(f"{endpoint}: {why}" for endpoint, why in failed.items())
        self.node.events.emit("tc.cluster.leave.fanout_failed", detail=detail)
        return Refusal(503, "tc_cluster_unavailable", f"Not every peer accepted the leave: {detail}")

    async def fan_out_leave(self, targets: Sequence[str], attempts: int) -> dict[str, str]:
        """Returns the peers that did not accept, and why."""
        reasons = await asyncio.gather(*(self.leave_at(target, attempts) for target in targets))
        return {target: why for target, why in zip(targets, reasons, strict=True) if why}

    async def leave_at(self, target: str, attempts: int) -> str:
        why = ""
        async with self.node.loop.peer_locks[target]:
            for attempt in range(attempts):
                if attempt:
                    await asyncio.sleep(FIRST_BACKOFF * 2 ** (attempt - 1))
                url = f"{target}/v1/tc/cluster/leave"
                why = await self.node.peers.accepts("membership", url, {}, self.guard_headers())
                if not why:
                    break
        return why

    async def go(self) -> None:
        """Removes the own lease, which switches loop and election off, and then releases the leader leases."""
        await self.remove_own()
        await self.release_as_leader()
        await self.membership_changed()

    async def remove_own(self) -> None:
        async with self.changing:
            self.pause()
            await self.node.members.remove(self.node.leader_id)
        self.node.election.peers = None

    def pause(self) -> None:
        self.paused = True

    async def release_as_leader(self) -> None:
        await self.node.election.resign()

    def announced(self, identity: str) -> None:
        """Ends the pause when the own identity was announced, whichever process presented its certificate."""
        if identity == self.node.leader_id and self.paused:
            self.resume()

    def resume(self) -> None:
        self.paused = False
        self.node.loop.wake.set()

    async def membership_changed(self) -> None:
        await self.node.election.refresh()
        self.node.election.wake.set()

    async def graceful_stop(self) -> None:
        """Leaves as far as possible; neither a dead peer nor a broken store delays the stop beyond the limit."""
        try:
            async with asyncio.timeout(STOP_LIMIT):
                await self.stop_leave()
        except TimeoutError:
            self.node.events.emit("tc.cluster.leave.fanout_failed", detail="no time left")
        except StoreUnavailable as error:
            self.node.events.emit("tc.cluster.leave.fanout_failed", detail=str(error))

    async def stop_leave(self) -> None:
        members = () if self.paused else (await self.node.members.active()).endpoints
        self.leaving = True
        release = self.release_as_leader()
        failed, _, _ = await asyncio.gather(self.fan_out_stop(members), release, self.remove_own())
        for endpoint, why in failed.items():
            self.node.events.emit("tc.cluster.leave.peer_failed", endpoint=endpoint, error=why)

    async def fan_out_stop(self, members: Sequence[str]) -> dict[str, str]:
        return await self.fan_out_leave(self.fan_out_targets(members), 1)
