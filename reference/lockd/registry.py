"""The RM registry (spec: RM Registry): one object, endpoints by backend hash, changed on all members or on none."""

import asyncio
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.reference.lockd.peers import PeerFailed
from holdfast.reference.lockd.store import NAMESPACE
from holdfast.reference.lockd.wire import Refusal, present

if TYPE_CHECKING:
    from holdfast.reference.lockd.node import Node

REPLICA = "X-Lockd-TC-Replicate"
KEY = "tc-rm-members"
INVERSE = {"register": "unregister", "unregister": "register"}
UNHEARD = "no answer: "


class Registry:
    namespace = NAMESPACE

    def __init__(self, node: "Node") -> None:
        self.node = node
        # Two calls about one pair: a failing one must not take back what the other was told is in force.
        self._changing: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    def is_replica(self, headers: Mapping[str, str], verb: str) -> bool:  # noqa: ARG002  # a seam
        return bool(headers.get(REPLICA, "").strip())

    def replica_headers(self) -> dict[str, str]:
        return {REPLICA: "1"}

    async def targets(self) -> list[str]:
        """The members at the time of the call, without ourselves."""
        members = (await self.node.members.active()).endpoints
        return [each for each in members if each != self.node.settings.self_endpoint]

    async def requested(self, verb: str, backend: str, endpoint: str, headers: Mapping[str, str]) -> dict[str, Any]:
        if self.is_replica(headers, verb):
            await self.apply(verb, backend, endpoint)
        else:
            async with self._changing[backend, endpoint]:
                await self.change_everywhere(verb, backend, endpoint)
        return await self.entry(backend)

    async def change_everywhere(self, verb: str, backend: str, endpoint: str) -> None:
        targets = await self.targets()
        self.refuse_if(await self.preflight(targets))
        changed = await self.apply(verb, backend, endpoint)
        failed = await self.replicate(targets, verb, backend, endpoint)
        if failed:
            await self.undo(targets, failed, verb, backend, endpoint, changed=changed)
            self.refuse_if(failed)

    def refuse_if(self, failed: Mapping[str, str]) -> None:
        if failed:
            detail = "; ".join(f"{endpoint}: {why}" for endpoint, why in failed.items())
            self.node.events.emit("tc.rm.replicate.failed", detail=detail)
            raise Refusal(502, "tc_rm_replication_failed", detail)

    async def preflight(self, targets: Sequence[str]) -> dict[str, str]:
        return _failures(targets, await asyncio.gather(*(self.probe(target) for target in targets)))

    async def probe(self, target: str) -> str:
        try:
            reply = await self.node.peers.call("registry", "GET", f"{target}/v1/tc/leader")
        except PeerFailed as failed:
            return UNHEARD + str(failed)
        return "" if reply.ok else f"status {reply.status}"

    async def replicate(self, targets: Sequence[str], verb: str, backend: str, endpoint: str) -> dict[str, str]:
        told = await asyncio.gather(*(self.send(target, verb, backend, endpoint) for target in targets))
        return _failures(targets, told)

    async def send(self, target: str, verb: str, backend: str, endpoint: str) -> str:
        body = {"backend_hash": backend, "endpoint": endpoint}
        url = f"{target}/v1/tc/rm/{verb}"
        try:
            reply = await self.node.peers.call("registry", "POST", url, body, self.replica_headers())
        except PeerFailed as failed:
            return UNHEARD + str(failed)
        return "" if reply.ok else f"status {reply.status}"

    async def undo(
        self,
        targets: Sequence[str],
        failed: Mapping[str, str],
        verb: str,
        backend: str,
        endpoint: str,
        *,
        changed: bool,
    ) -> None:
        """Only what this call changed. A peer that was not heard may have taken the change, so it is told too."""
        if not self.takes_back(changed=changed):
            return
        await self.undo_local(verb, backend, endpoint)
        reached = [each for each in targets if failed.get(each, UNHEARD).startswith(UNHEARD)]
        await self.undo_peers(reached, verb, backend, endpoint)

    def takes_back(self, *, changed: bool) -> bool:
        return changed

    async def undo_local(self, verb: str, backend: str, endpoint: str) -> None:
        await self.apply(INVERSE[verb], backend, endpoint)

    async def undo_peers(self, reached: Sequence[str], verb: str, backend: str, endpoint: str) -> None:
        left = await self.replicate(reached, INVERSE[verb], backend, endpoint)
        for target, why in left.items():
            self.node.events.emit("tc.rm.rollback.failed", endpoint=target, error=why)

    async def apply(self, verb: str, backend: str, endpoint: str) -> bool:
        """Change the own store; whether there was anything to change."""
        changed = False

        def edit(stored: Any) -> Any:
            nonlocal changed
            made, changed = self.edited(stored, verb, backend, endpoint)
            return made

        await self.write(edit, backend)
        return changed

    async def write(self, edit: Any, backend: str) -> None:  # noqa: ARG002  # a seam: one object for all hashes
        await self.node.island.change(self.namespace, KEY, edit)

    def edited(self, stored: Any, verb: str, backend: str, endpoint: str) -> tuple[Any, bool]:
        """The registry after the change; the same object, and False, when the pair was so already."""
        backends = {each["backend_hash"]: each for each in (stored or {}).get("backends", [])}
        entry = backends.get(backend, {"endpoints": []})
        if (endpoint in entry["endpoints"]) == (verb == "register"):
            return stored, False
        now = self.node.clock.wall_ms()
        endpoints = self.with_change(entry["endpoints"], verb, endpoint)
        backends[backend] = {"backend_hash": backend, "endpoints": endpoints, "updated_at_unix": now}
        kept = [backends[each] for each in sorted(backends) if backends[each]["endpoints"]]
        return ({"backends": kept, "updated_at_unix": now} if kept else None), True

    def with_change(self, endpoints: Sequence[str], verb: str, endpoint: str) -> list[str]:
        return sorted({*endpoints, endpoint} if verb == "register" else {*endpoints} - {endpoint})

    async def load(self) -> dict[str, Any]:
        return await self.node.island.read(self.namespace, KEY) or {}

    async def entry(self, backend: str) -> dict[str, Any]:
        known = {each["backend_hash"]: each for each in (await self.load()).get("backends", [])}
        found = known.get(backend, {})
        stamp = present({"updated_at_unix": found.get("updated_at_unix", 0)})
        return {"backend_hash": backend, "endpoints": found.get("endpoints"), **stamp}

    async def listing(self) -> dict[str, Any]:
        stored = await self.load()
        return {"backends": stored.get("backends"), **present({"updated_at_unix": stored.get("updated_at_unix", 0)})}

    async def endpoints_of(self, backend: str) -> list[str]:
        return list((await self.entry(backend))["endpoints"] or ())


def _failures(targets: Sequence[str], reasons: Sequence[str]) -> dict[str, str]:
    return {target: why for target, why in zip(targets, reasons, strict=True) if why}
