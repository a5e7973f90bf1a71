"""Leave (spec: Leave (self-only)): who may be removed, who is told, and what a leader owes on its way out."""

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
        self.changing = asyncio.Lock()  # own announce and own removal, one at a time
        self._one_at_a_time = asyncio.Lock()

    def is_guarded(self, headers: Mapping[str, str]) -> bool:
        return bool(headers.get(GUARD, "").strip())

    def must_fan_out(self, identity: str, headers: Mapping[str, str]) -> bool:
        """Only our own leave: a foreign one sent on under our certificate would remove us elsewhere."""
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
        """All or nothing: leadership and the own lease stay until every peer has accepted."""
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
        """Announcing starts again at once, also towards peers that had already dropped us."""
        self.node.loop.wake.set()
        detail = "; ".join(f"{endpoint}: {why}" for endpoint, why in failed.items())
        self.node.events.emit("tc.cluster.leave.fanout_failed", detail=detail)
        return Refusal(503, "tc_cluster_unavailable", f"Not every peer accepted the leave: {detail}")

    async def fan_out_leave(self, targets: Sequence[str], attempts: int) -> dict[str, str]:
        """The peers that did not accept, and why."""
        reasons = await asyncio.gather(*(self.tell(target, attempts) for target in targets))
        return {target: why for target, why in zip(targets, reasons, strict=True) if why}

    async def tell(self, target: str, attempts: int) -> str:
        why = ""
        async with self.node.loop.telling[target]:
            for attempt in range(attempts):
                if attempt:
                    await asyncio.sleep(FIRST_BACKOFF * 2 ** (attempt - 1))
                url = f"{target}/v1/tc/cluster/leave"
                why = await self.node.peers.accepts("membership", url, {}, self.guard_headers())
                if not why:
                    break
        return why

    async def go(self) -> None:
        """Out of the own list, paused, and no leader any more."""
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
        """An announce of our own identity, by whoever holds our certificate, ends the pause."""
        if identity == self.node.leader_id and self.paused:
            self.resume()

    def resume(self) -> None:
        self.paused = False
        self.node.loop.wake.set()

    async def membership_changed(self) -> None:
        await self.node.election.refresh()
        self.node.election.wake.set()

    async def graceful_stop(self) -> None:
        """Best effort, within limits: neither a dead peer nor a broken store may hold the stop up."""
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
        told, _, _ = await asyncio.gather(self.tell_all_stopping(members), release, self.remove_own())
        for endpoint, why in told.items():
            self.node.events.emit("tc.cluster.leave.peer_failed", endpoint=endpoint, error=why)

    async def tell_all_stopping(self, members: Sequence[str]) -> dict[str, str]:
        return await self.fan_out_leave(self.fan_out_targets(members), 1)
