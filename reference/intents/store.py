"""The scripts as typed calls, and the few plain commands beside them. API and worker use the same ones."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import hiredis

from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared.redislink import RedisAway
from holdfast.reference.shared.scriptstore import Facts, Scripted, ScriptStore

Record = dict[str, str]
SCAN_PAGE = 1000
AWAY = (RedisAway, TimeoutError, hiredis.ReplyError)
"""What a call raises when the store does not do it: it is away, too slow, or refuses."""


class Stored(Scripted, Protocol):
    """The parts of a process that its store needs."""

    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True)
class Accepted:
    """What became of a start: `made` a session, or found one that its key maps to."""

    made: bool
    session_id: str
    correlation_id: str


@dataclass(frozen=True)
class Move:
    """A change of state: from one of these states, to that one, with its reason."""

    session_id: str
    from_: tuple[str, ...]
    to: str
    reason: str = "R_NONE"
    detail: str = ""

    def facts(self, fields: Record | None = None) -> Facts:
        head = {"sessionId": self.session_id, "from": self.from_, "to": self.to}
        return {**head, "reason": self.reason, "detail": self.detail, "fields": fields or {}}


class Store(ScriptStore):
    def __init__(self, node: Stored) -> None:
        super().__init__(node)
        self.node = node

    async def run_in_time(self, name: str, facts: Facts) -> Any:
        """Runs a script for a caller that waits; raises TimeoutError when the store takes too long."""
        async with asyncio.timeout(self.node.settings.store_timeout):
            return await self.run(name, facts)

    async def accept(self, candidates: Sequence[str], session: Record, event: Record) -> Accepted:
        facts = {"candidates": candidates, "session": session, "event": event}
        answer = await self.run_in_time("accept", facts)
        return Accepted(answer["made"], answer["sessionId"], answer.get("correlationId", ""))

    async def publish(self, event: Record) -> None:
        """Puts one event on the bus."""
        await self.node.link.call("XADD", self.node.scripts.limits["bus"], "*", *_words(event))

    async def request_stop(self, session_id: str, event: Record) -> bool:
        return bool((await self.run_in_time("request_stop", {"sessionId": session_id, "event": event}))["noted"])

    async def session(self, session_id: str) -> Record | None:
        answer = await self.run_in_time("read_session", {"sessionId": session_id})
        record: Record | None = answer.get("session")
        return record

    async def sessions(self) -> list[Record]:
        """Returns all records, oldest first."""
        async with asyncio.timeout(self.node.settings.store_timeout):
            names = [name async for name in self._names("session:*")]
            stored = await asyncio.gather(*(self.node.link.call("HGETALL", name) for name in names))
        records = [dict(zip(map(_text, words[::2]), map(_text, words[1::2]), strict=True)) for words in stored if words]
        return sorted(records, key=lambda record: (record.get("createdAtMs", ""), record["sessionId"]))

    async def move(self, move: Move, fields: Record | None = None) -> Any:
        return await self.run("move_session", move.facts(fields))

    async def end(self, move: Move, owner: str, leases: Iterable[str]) -> Any:
        """Ends a session and releases what it owns, in one step."""
        return await self.run("end_session", {**move.facts(), "leases": list(leases), "owner": owner})

    async def renew(self, session_id: str, owner: str, leases: Iterable[str]) -> list[str] | None:
        """Returns the leases that are lost, or None when the session has been ended by another process."""
        facts = {"sessionId": session_id, "owner": owner, "leases": list(leases)}
        answer = await self.run("renew_session", facts)
        return None if answer["ended"] else list(answer["lost"])

    async def look_at(self, session_ids: Iterable[str]) -> tuple[list[str], list[str]]:
        """Returns which sessions are to be stopped, and which have been ended by another process."""
        answer = await self.run("look_at", {"sessionIds": list(session_ids)})
        return list(answer["stop"]), list(answer["ended"])

    async def expire(self, *, all_: bool) -> list[Record]:
        return list((await self.run("expire_sessions", {"all": all_}))["ended"])

    async def acquire(self, lease: str, owner: str, by: str) -> int:
        """Returns 1 if the lease was free, 2 if it was the owner's already, 0 if another holds it."""
        return int((await self.run("acquire_lease", {"lease": lease, "owner": owner, "by": by}))["taken"])

    async def release(self, lease: str, owner: str) -> bool:
        return bool((await self.run("release_lease", {"lease": lease, "owner": owner}))["released"])

    async def flush(self) -> int:
        """Deletes all leases and returns how many there were."""
        return int((await self.run("flush_leases", {}))["count"])

    async def trim_bus(self) -> None:
        await self.run("trim_bus", {})

    async def _names(self, pattern: str) -> Any:
        cursor = b"0"
        while True:
            cursor, names = await self.node.link.call("SCAN", cursor, "MATCH", pattern, "COUNT", SCAN_PAGE)
            for name in names:
                yield name
            if cursor == b"0":
                return


def _words(event: Record) -> list[str]:
    return [word for pair in event.items() for word in pair]


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
