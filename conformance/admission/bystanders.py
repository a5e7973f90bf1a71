"""Clients with a session and a place in line, which must not be affected by what a check does beside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.check.finding import expect
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import place


@dataclass(frozen=True)
class Bystanders:
    """One character inside and one waiting."""

    arena: Instance
    inside: Character
    waiting: Character
    socket: Socket

    async def unharmed(self) -> None:
        """Raises Finding if the session is no longer served or the place in line has changed."""
        await self.socket.beat("the bystander's session")
        expect(await self.arena.status(self.waiting), place(0, 1), why="the bystander's place in line")


@asynccontextmanager
async def bystanders(admission: Admission) -> AsyncIterator[Bystanders]:
    """Gives bystanders on a full instance and looks after the block whether they are unharmed.

    The instance is full, so an entry that should not be there shows as another place in line.
    """
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    held = await arena.hold(inside)
    await arena.enqueue(waiting)
    present = Bystanders(arena, inside, waiting, held.socket)
    yield present
    await present.unharmed()
    with admission.arranging("AD-POLL-01"):
        await arena.queues(await admission.character(), position=1, why="control: a valid attempt")
