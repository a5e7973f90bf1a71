"""What a node owes Redis, and what it does when Redis is back (risk: Redis outage, protect session integrity)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.reference.admission.redislink import Call, RedisAway
from holdfast.reference.admission.verdicts import Record

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


@dataclass(eq=False, slots=True)
class Debt:
    script: str
    facts: Record
    then: Callable[[Any], None]


class Recovery:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._debts: dict[Debt, None] = {}
        self._paid = asyncio.Event()

    def owe(self, script: str, facts: Record, then: Callable[[Any], None]) -> None:
        """Runs a script now, or as soon as Redis is back; kept until Redis has acknowledged it.

        It travels on the connection of the work that it follows, so it can't overtake it.
        """
        debt = Debt(script, facts, then)
        self._debts[debt] = None
        self.node.spawn(self._pay_now(debt))

    async def _pay_now(self, debt: Debt) -> None:
        try:
            await self._pay(debt, self.node.link.call)
        except RedisAway:
            return  # stays owed; the next connection pays it first

    async def _pay(self, debt: Debt, call: Call) -> None:
        answer = await self.node.store.run(debt.script, debt.facts, call)
        if debt in self._debts:
            del self._debts[debt]
            debt.then(answer)
        if not self._debts:
            self._paid.set()

    async def on_connect(self, call: Call) -> None:
        """Before anybody is served on a new connection: late work is undone, live sockets are put right."""
        await self.node.store.prepare(call)
        for debt in list(self._debts):
            await self._pay(debt, call)
        await self.put_right(call)

    async def put_right(self, call: Call) -> None:
        """Heartbeats that could not be stored are no silence: they are written again before any janitor looks."""
        live = list(self.node.sockets.open.values())
        await asyncio.gather(*(self.restore(socket.session, socket.id, call) for socket in live))
        self.node.janitor.hold()

    async def restore(self, session: Record, socket_id: str, call: Call) -> None:
        restored = await self.node.store.restore(session, call)
        if restored["kept"]:
            return
        if not restored.get("taken") and "ended" not in restored:
            self.node.sockets.emit_lost(session)  # nobody else knows of this end
        code = 4002 if restored.get("taken") else 4001 if restored.get("ended") == "replace" else 4003
        await self.node.sockets.close(socket_id, code)

    def stalled(self) -> None:
        """Redis did not answer for so long that heartbeats of live sockets may be missing from it."""
        self.node.janitor.hold()

    async def settle(self, seconds: float) -> None:
        """Before the node goes: what is owed gets a last chance."""
        if self._debts:
            self._paid.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._paid.wait(), seconds)
