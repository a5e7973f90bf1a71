"""The RM registry (spec: RM Registry): endpoints by backend hash, changed on all members or on none.

Each island stores the whole registry as one object. A change that a client asks for goes in this order, and the
answer comes after the last step:

1. Read the members; they are the targets of this change, even if the list changes meanwhile.
2. Probe all of them. If one does not answer, refuse with 502: nothing was written, so nothing has to be undone.
3. Write to the own store, and note whether that changed anything.
4. Replicate to all targets. A replica carries a header; its receiver writes to its own store and sends nothing on.
5. If a target failed, undo: first here, then at every target that took the change or may have taken it (it did not
   answer). Then refuse with 502.

Only what this call has changed is undone. A repeated register changes nothing; if its replication fails, the entry
that an earlier call was answered for must stay. For the same reason calls about one pair wait for each other
(`_changing`): a failing call must not undo a change for which another call was answered 200 in between. Calls about
one pair that arrive at two coordinators at once are not ordered by anything; the spec has no rule for them.

There is no log of changes. A coordinator that dies between write and undo, or an undo that does not arrive, leaves
the members different. Every change replicates even where it changes nothing here, so the next repetition of the call
repairs that: for registers, the RM loop of each server (`rmloop.py`).
"""

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
        self._changing: defaultdict[tuple[str, str], asyncio.Lock] = defaultdict(asyncio.Lock)

    def is_replica(self, headers: Mapping[str, str], verb: str) -> bool:  # noqa: ARG002  # a seam
        return bool(headers.get(REPLICA, "").strip())

    def replica_headers(self) -> dict[str, str]:
        return {REPLICA: "1"}

    async def targets(self) -> list[str]:
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
        reasons = await asyncio.gather(*(self.send(target, verb, backend, endpoint) for target in targets))
        return _failures(targets, reasons)

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
        if not self.takes_back(verb, changed=changed):
            return
        await self.undo_local(verb, backend, endpoint)
        reached = [each for each in targets if failed.get(each, UNHEARD).startswith(UNHEARD)]
        await self.undo_peers(reached, verb, backend, endpoint)

    def takes_back(self, verb: str, *, changed: bool) -> bool:  # noqa: ARG002  # a seam
        return changed

    async def undo_local(self, verb: str, backend: str, endpoint: str) -> None:
        await self.apply(INVERSE[verb], backend, endpoint)

    async def undo_peers(self, reached: Sequence[str], verb: str, backend: str, endpoint: str) -> None:
        left = await self.replicate(reached, INVERSE[verb], backend, endpoint)
        for target, why in left.items():
            self.node.events.emit("tc.rm.rollback.failed", endpoint=target, error=why)

    async def apply(self, verb: str, backend: str, endpoint: str) -> bool:
        """Changes the own store; returns whether there was anything to change."""
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
        """Returns the registry after the change and True, or the same object and False when nothing changes."""
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
