"""python -m tests.bench.client http|direct REDIS_URL NODE_URL SECRET ATTEMPTS IN_FLIGHT: prints admissions a second."""

# ruff: noqa: T201 - it reports on its standard output

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
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
            writer.write(request(node, instance, character))
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            body = await reader.readexactly(length)
            assert b'"outcome":"success"' in body.replace(b" ", b""), body
        writer.close()

    return work


def request(node: Node, instance: str, character: str) -> bytes:
    body = json.dumps({"characterId": character, "clientBuild": BUILD}).encode()
    signature = node.identity.sign(character).decode()
    lines = [
        f"POST /instances/{instance}/connect HTTP/1.1",
        "Host: 127.0.0.1",
        "Content-Type: application/json",
        f"Authorization: Bearer hf1.{character}.{signature}",
        f"Content-Length: {len(body)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


async def rate(mode: str, redis: str, url: str, secret: str, attempts: int, in_flight: int) -> float:
    instance, characters = f"bench-{uuid.uuid4().hex[:8]}", [str(uuid.uuid4()) for _ in range(attempts)]
    node = Node(Settings(redis_url=redis, auth_secret=secret, current_client_build=BUILD), Components())
    await arrange(node, instance, characters)
    work = direct(node, instance) if mode == "direct" else http(node, instance, url)
    todo = iter(characters)
    began = time.monotonic()
    await asyncio.gather(*(work(todo) for _ in range(in_flight)))
    taken = time.monotonic() - began
    await node.link.close()
    return attempts / taken


if __name__ == "__main__":
    mode, redis, url, secret, attempts, in_flight = sys.argv[1:]
    print(uvloop.run(rate(mode, redis, url, secret, int(attempts), int(in_flight))))
