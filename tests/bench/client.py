"""python -m tests.bench.client http|direct REDIS_URL NODE_URL SECRET ATTEMPTS IN_FLIGHT: prints admissions a second."""

# ruff: noqa: T201 - it reports on its standard output

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import uvloop

from holdfast.reference.admission.attempts import Attempt
from holdfast.reference.admission.components import Components
from holdfast.reference.admission.node import Node
from holdfast.reference.admission.settings import Settings

BUILD = "dev-build"
Worker = Callable[[Iterator[str]], Awaitable[None]]


async def arrange(node: Node, instance: str, characters: list[str]) -> None:
    """Registers the instance and the characters; each belongs to the user of the same name."""
    node.link.start()
    await node.link.first(10)
    await node.store.run(
        "register_instance", {"instanceId": instance, "capacity": len(characters), "state": "accepting"}
    )
    for start in range(0, len(characters), 100):
        facts = [{"characterId": c, "userId": c, "suspended": False} for c in characters[start : start + 100]]
        await asyncio.gather(*(node.store.run("register_character", each) for each in facts))


def direct(node: Node, instance: str) -> Worker:
    """Returns a worker that runs the script as the node does, with the same facts and over the node's link."""

    async def work(todo: Iterator[str]) -> None:
        for character in todo:
            now = time.monotonic()
            deadline = node.attempts.deadline_of(now)
            attempt = Attempt(instance_id=instance, user_id=character, received=now, deadline=deadline)
            attempt.character_id, attempt.build_ok = character, True
            verdict = await node.store.decide(node.attempts.facts(attempt, character))
            assert verdict["outcome"] == "success", verdict

    return work


def http(node: Node, instance: str, url: str) -> Worker:
    """Returns a worker that writes requests by hand over one connection, to leave out what a client library costs."""
    host, port = urlsplit(url).hostname, urlsplit(url).port

    async def work(todo: Iterator[str]) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for character in todo:
            body = await exchange(reader, writer, request(node, instance, character))
            assert b'"outcome":"success"' in body.replace(b" ", b""), body
        writer.close()

    return work


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, said: bytes) -> bytes:
    """Writes a request and returns the body of its answer."""
    writer.write(said)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    return await reader.readexactly(length)


def request(node: Node, instance: str, character: str) -> bytes:
    signature = node.identity.sign(character).decode()
    body = {"characterId": character, "clientBuild": BUILD}
    return written(f"/instances/{instance}/connect", f"hf1.{character}.{signature}", body)


def written(path: str, bearer: str, said: dict[str, Any]) -> bytes:
    """Returns a POST as it goes over the wire."""
    body = json.dumps(said).encode()
    lines = [
        f"POST {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Authorization: Bearer {bearer}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def rate(mode: str, redis: str, url: str, secret: str, attempts: int, in_flight: int) -> float:
    instance, characters = f"bench-{uuid.uuid4().hex[:8]}", [str(uuid.uuid4()) for _ in range(attempts)]
    node = Node(Settings(redis_url=redis, auth_secret=secret, current_client_build=BUILD), Components())
    await arrange(node, instance, characters)
    work = direct(node, instance) if mode == "direct" else http(node, instance, url)
    reached = await a_second(work, characters, in_flight)
    await node.link.close()
    return reached


async def a_second(work: Worker, names: Sequence[str], in_flight: int) -> float:
    """Lets so many workers do the work for all names; returns how many a second."""
    todo, began = iter(names), time.monotonic()
    await asyncio.gather(*(work(todo) for _ in range(in_flight)))
    return len(names) / (time.monotonic() - began)


if __name__ == "__main__":
    mode, redis, url, secret, attempts, in_flight = sys.argv[1:]
    print(uvloop.run(rate(mode, redis, url, secret, int(attempts), int(in_flight))))
