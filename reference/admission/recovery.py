"""What a node owes Redis, and what it does when Redis is back (risk: Redis outage, protect session integrity).

Invariant: a script whose effect is already promised runs at least once, whatever happens to the connection. Such
scripts are `undo` (the client was told that nothing happened), `leave` and `drop` (the socket is gone already). Each
is a `Debt`, kept until Redis has acknowledged it. A debt runs twice if the connection broke between run and
acknowledgement; these scripts change nothing the second time, and `then` is called once. Debts are in memory: what a
crashed node owed is left to the janitor, which ends sessions without heartbeats.

Order. A debt is sent on the connection of the work that it follows, and Redis runs the commands of one connection in
order, so an undo never overtakes what it undoes. On a new connection `on_connect` comes before everything else:

1. The scripts are loaded and the clocks compared.
2. Debts are paid in the order in which they arose.
3. `put_right` runs `restore` for every live socket: its heartbeats could not be written and must not count as
   silence, and a Redis that came back empty gets its sessions back before it admits others into their slots.
4. The janitor is held for one interval, so that the other nodes get as far too before any session is judged.
5. Debts that arose during all this are paid: no other connection would pay them before the next outage. After the last
   one nothing else runs until the connection is open to everybody, so none is forgotten in between.

Only then may anybody else use the connection (redislink.py). Until then, requests are refused as during the outage.

Who owns what. This module owns the debts. Redis owns the sessions: a live socket keeps its session only if Redis has
no record that it ended or went to another socket.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.reference.admission.verdicts import Record
from holdfast.reference.shared.redislink import Call, RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


@dataclass(eq=False, slots=True)
class Debt:
    """A script that has to run, and what to do with its answer."""

    script: str
    facts: Record
    then: Callable[[Any], None]


class Recovery:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self._debts: dict[Debt, None] = {}
        self._paid = asyncio.Event()

    def owe(self, script: str, facts: Record, then: Callable[[Any], None]) -> None:
        """Runs a script now, or as soon as Redis is back, then calls `then` once with the answer."""
        debt = Debt(script, facts, then)
        self._debts[debt] = None
        self.node.spawn(self._pay_now(debt))

    async def _pay_now(self, debt: Debt) -> None:
        with suppress(RedisAway):  # stays owed; on_connect pays it
            await self._pay(debt, self.node.link.call)

    async def _pay(self, debt: Debt, call: Call) -> None:
        answer = await self.node.store.run(debt.script, debt.facts, call)
        if debt in self._debts:  # on_connect may have paid it meanwhile
            del self._debts[debt]
            debt.then(answer)
        if not self._debts:
            self._paid.set()

    async def on_connect(self, call: Call) -> None:
        """Prepares a new connection before anybody else uses it: undoes late work and puts live sockets right."""
        await self.node.store.prepare(call)
        await self._pay_all(call)
        await self.put_right(call)
        await self._pay_all(call)

    async def _pay_all(self, call: Call) -> None:
        """Pays what is owed, and what comes to be owed meanwhile; returns without a pause after the last."""
        while self._debts:
            await self._pay(next(iter(self._debts)), call)

    async def put_right(self, call: Call) -> None:
        """Writes the heartbeats of live sockets again before any janitor looks."""
        live = list(self.node.sockets.open.values())
        await asyncio.gather(*(self.restore(socket.session, socket.id, call) for socket in live))
        self.node.janitor.hold()

    async def restore(self, session: Record, socket_id: str, call: Call) -> None:
        """Keeps a live socket if its session is still its own; closes it otherwise, with the code of the reason."""
        restored = await self.node.store.restore(session, call)
        if restored["kept"]:
            return
        if not restored.get("taken") and "ended" not in restored:
            self.node.sockets.emit_lost(session)  # no other node can log this end
        code = 4002 if restored.get("taken") else 4001 if restored.get("ended") == "replace" else 4003
        await self.node.sockets.close(socket_id, code)

    def stalled(self) -> None:
        """Holds the janitor: Redis answered so late that heartbeats of live sockets may be missing from it."""
        self.node.janitor.hold()

    async def settle(self, seconds: float) -> None:
        """Waits for the debts to be paid, but no longer than `seconds`; called before the node stops."""
        if self._debts:
            self._paid.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._paid.wait(), seconds)
