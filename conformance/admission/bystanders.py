"""People who mind their own business while a check does something hostile beside them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import queued
from holdfast.finding import expect


@dataclass(frozen=True)
class Bystanders:
    """Someone inside and someone waiting, who must notice nothing."""

    arena: Instance
    inside: Character
    waiting: Character
    socket: Socket

    async def unharmed(self) -> None:
        await self.socket.beat()
        seen = await self.arena.status(self.waiting)
        expect((seen.status, seen.position, seen.depth), (200, 0, 1), why="the bystander's place in line")


@asynccontextmanager
async def bystanders(admission: Admission) -> AsyncIterator[Bystanders]:
    """The instance is full, so whatever slips in shows as a second place in line."""
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    held = await arena.hold(inside)
    await arena.enqueue(waiting)
    present = Bystanders(arena, inside, waiting, held.socket)
    yield present
    await present.unharmed()
    expect(await arena.connect(await admission.character()), queued(position=1), why="control: a sound attempt")
