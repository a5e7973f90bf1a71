"""Names of the leases, and what is done with one (3.2): API and worker mean the same key and the same owner.

The owner of a lease is the session, because the session's id is the one identity that API and worker share.
"""

from collections.abc import Mapping
from typing import Protocol

from holdfast.reference.intents.store import Store
from holdfast.reference.shared.jsonlog import JsonLog


class LeaseKeeper(Protocol):
    """The parts of a process that its leases need."""

    @property
    def store(self) -> Store: ...

    @property
    def events(self) -> JsonLog: ...


class Leases:
    by = "worker"

    def __init__(self, node: LeaseKeeper) -> None:
        self.node = node
        self.events = node.events

    def key_service(self, session: Mapping[str, str]) -> str:
        return f"lease:service:{session['serviceRef']}"

    def key_tuner(self, slot: int) -> str:
        return f"lease:tuner:{slot}"

    def owner_for(self, session_id: str) -> str:
        return session_id

    async def acquire(self, lease: str, session_id: str) -> int:
        """Returns 1 if the lease was free, 2 if it was the session's already, 0 if another holds it."""
        owner = self.owner_for(session_id)
        taken = await self.node.store.acquire(lease, owner, self.by)
        self.tell(("lease.denied", "lease.acquired", "lease.refreshed")[taken], lease, session_id)
        return taken

    async def release(self, lease: str, session_id: str) -> bool:
        released = await self.node.store.release(lease, self.owner_for(session_id))
        if released:
            self.tell("lease.released", lease, session_id)
        return released

    def tell(self, event: str, lease: str, session_id: str) -> None:
        self.events.emit(event, key=lease, owner=self.owner_for(session_id), sessionId=session_id)


class ApiLeases(Leases):
    """The lease that the API takes for a session in phase 1."""

    by = "api"
