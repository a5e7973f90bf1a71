"""Hostile requests (fills seed §7, §11): each gets the spec's refusal, never a server error, never a changed state."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import hypothesis
from hypothesis import strategies

from holdfast.check import verifies
from holdfast.conformance.admission import rawtcp, wire
from holdfast.conformance.admission.client import Admission, Instance, moment
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer, coded, queued, status, success, turned_away
from holdfast.finding import expect
from holdfast.spectime import SpecTime

JSON = {"Content-Type": "application/json"}
NESTED = 5_000
# Above Python's own limit for turning digits into a number, which is where servers stumble.
DIGITS = "9" * 5_000
HUGE = 10_000_000

# Not one JSON object with texts in it, however it is read.
NO_OBJECT = [
    b"", b" ", b"{", b"}", b"null", b"true", b"42", b'"text"', b"[]", b"[{}]", b"\x00", b"\xff\xfe{}", b"{'characterId': 1}",
    b'{"characterId": "' + b"a" * 100, b"[" * NESTED, b"[" * NESTED + b"]" * NESTED, DIGITS.encode(), b"NaN",
    b'{"characterId"}', b'{"characterId": "\xc3\x28"}', b"<connect/>", b"characterId=1&clientBuild=dev-build",
]  # fmt: skip

# What stands for characterId while all else is right.
NO_CHARACTER = [
    "1", "true", "1.5", "-1", "1e999", DIGITS, "NaN", "[]", "{}", '["x"]', '{"$ne": null}', '""', "null", '"\\u0000"',
    '"\\ud800"', '"*"', '"../../x"', '"a:b"', f'"{"a" * 30_000}"', "[" * NESTED + "]" * NESTED, '"💥"', '"\\r\\nSET x 1"',
]  # fmt: skip

# What stands for an instance id in the path, as it goes over the wire.
NO_INSTANCE = [
    "bad%40id%2A", "%00", "a%00b", "..", "%2e%2e", "..%2F..%2Fadmin", "a%2Fb", "%0d%0aX-Evil:1", "a%20b", "%ff%fe", "%F0%9F%92%A5",
    "session:char:x", "*", "a" * 5_000, "%", "%zz", "", "{}", "<x>", "a;b", "a?b",
]  # fmt: skip

# Values of every type, by field, that no administration call may take.
NO_SETTINGS = [
    {"capacity": value} for value in (-1, "x", 1.5, True, [], {}, 1e300, 10**30)
] + [{"capacity": 5, "state": value} for value in ("", "open", 5, [], {})]  # fmt: skip


@dataclass(frozen=True)
class Bystanders:
    """Someone inside and someone waiting, who must notice nothing."""

    arena: Instance
    socket: Socket
    waiting: Character

    async def unharmed(self) -> None:
        await self.socket.beat()
        seen = await self.arena.status(self.waiting)
        expect((seen.status, seen.position, seen.depth), (200, 0, 1), why="the bystander's place in line")
        expect(await self.arena.admission.call(wire.Request("GET", "/health"), None), status(200, 404), why="the node")


@asynccontextmanager
async def _bystanders(admission: Admission) -> AsyncIterator[Bystanders]:
    """The instance is full, so whatever slips through becomes visible as a second place in line."""
    arena = await admission.instance(capacity=1)
    inside, waiting = await admission.characters(2)
    _, socket = await arena.join(inside)
    await arena.enqueue(waiting)
    bystanders = Bystanders(arena, socket, waiting)
    yield bystanders
    await bystanders.unharmed()
    expect(await arena.connect(await admission.character()), queued(position=1), why="control: a sound attempt")


def _body(character: str, **fields: Any) -> bytes:
    """A sound body, except that `character` and the fields are pasted in as they are."""
    texts = {"clientBuild": '"dev-build"', **fields}
    return ("{" + ", ".join([f'"characterId": {character}', *(f'"{k}": {v}' for k, v in texts.items())]) + "}").encode()


async def _post(admission: Admission, path: str, body: bytes, user: User | None = None, **headers: str) -> Answer:
    said = {**JSON, "Authorization": f"Bearer {(user or admission.user()).bearer}"} | headers
    return await admission.raw("POST", path, data=body, headers=said)
