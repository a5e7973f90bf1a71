"""Lockd nodes, each in its own process, with bundles, and callers with certificates of every kind."""

import asyncio
import io
import json
import os
import signal
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from holdfast.conformance.lockd import bundles
from tests.reference.world import free_port

TTL = 2.0
GUARD = {"X-Lockd-TC-Leave-Fanout": "1"}
REPLICA = {"X-Lockd-TC-Replicate": "1"}
XID = "9m4e2mr0ui3e8a215n4g"
Answer = dict[str, Any]


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 15.0) -> Any:
    """Waits until the condition is true and returns its value; raises TimeoutError after the given seconds."""
    async with asyncio.timeout(seconds):
        while True:
            if value := await condition():
                return value
            await asyncio.sleep(0.05)


def context_for(bundle: bytes) -> ssl.SSLContext:
    """Returns a TLS context from a bundle, whose first block is the authority and whose rest is leaf and key."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    end = bundle.index(b"-----END CERTIFICATE-----\n") + len(b"-----END CERTIFICATE-----\n")
    context.load_verify_locations(cadata=bundle[:end].decode())
    with tempfile.NamedTemporaryFile() as file:
        file.write(bundle[end:])
        file.flush()
        context.load_cert_chain(file.name)
    return context


class Caller:
    """A client with a certificate."""

    def __init__(self, world: "World", bundle: bytes, node_id: str = "") -> None:
        self.world = world
        self.node_id = node_id
        self.context = context_for(bundle)
        self.context.load_verify_locations(cadata=world.authority.pem)

    async def call(
        self, method: str, node: int, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        url = f"{self.world.endpoint(node)}{path}"
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = None if body is None else io.BytesIO(raw)
        timeout = aiohttp.ClientTimeout(total=10)
        connector = aiohttp.TCPConnector(ssl=self.context, force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
            http.request(method, url, data=data, headers=headers) as reply,
        ):
            answer: Answer = await reply.json(content_type=None) or {}
            return {**answer, "status": reply.status}

    async def get(self, node: int, path: str) -> Answer:
        return await self.call("GET", node, f"/v1/{path}")

    async def post(self, node: int, path: str, body: Any = None, headers: Mapping[str, str] | None = None) -> Answer:
        return await self.call("POST", node, f"/v1/{path}", body, headers)

    async def announce(self, node: int, endpoint: str) -> Answer:
        return await self.post(node, "tc/cluster/announce", {"self_endpoint": endpoint})

    async def leave(self, node: int, *, guarded: bool = True) -> Answer:
        return await self.post(node, "tc/cluster/leave", {}, GUARD if guarded else None)


class World:
    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.settings = settings
        self.authority = bundles.Authority.new()
        self.ports: list[int] = []
        self.nodes: dict[int, subprocess.Popen[bytes]] = {}
        bundles.write(folder / "tc-client.pem", self.authority.client_bundle(bundles.tc_client("test")))
        self.client = Caller(self, (folder / "tc-client.pem").read_bytes())

    def endpoint(self, number: int) -> str:
        scheme = "http" if "LOCKD_DISABLE_MTLS" in self.settings else "https"
        return f"{scheme}://127.0.0.1:{self.ports[number]}"

    def server(self) -> Caller:
        """Returns a caller with a server certificate that belongs to no node."""
        node_id = bundles.new_node_id()
        return Caller(self, self.authority.client_bundle(bundles.server(node_id)), node_id)

    def as_node(self, number: int) -> Caller:
        bundle = self.bundle(number).read_bytes()
        return Caller(self, bundle[: bundle.index(b"-----BEGIN KRYPT")], bundles.node_id_of(bundle))

    def bundle(self, number: int) -> Path:
        return self.folder / f"n{number}" / "server.pem"

    def add(self) -> int:
        self.ports.append(free_port())
        number = len(self.ports) - 1
        bundles.write(self.bundle(number), self.authority.server_bundle(bundles.server(bundles.new_node_id())))
        return number

    def start(self, number: int, **settings: str) -> None:
        environment = {
            **os.environ,
            "LOCKD_LISTEN": f"127.0.0.1:{self.ports[number]}",
            "LOCKD_SELF": self.endpoint(number),
            "LOCKD_JOIN": ",".join(self.endpoint(each) for each in range(len(self.ports))),
            "LOCKD_BUNDLE": str(self.bundle(number)),
            "LOCKD_TC_CLIENT_BUNDLE": str(self.folder / "tc-client.pem"),
            "LOCKD_TC_ALLOW_DEFAULT_CA": "true",
            "LOCKD_TC_FANOUT_TIMEOUT": "1s",
            "HOLDFAST_LEADER_TTL": f"{TTL:g}",
            "HOLDFAST_RM_REGISTER_PERIOD": "3",
            **self.settings,
            **settings,
        }
        environment = {name: value.format(folder=self.folder) for name, value in environment.items()}
        with self.log(number).open("ab") as log:
            words = [sys.executable, "-m", "holdfast.reference.lockd.node"]
            self.nodes[number] = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    def log(self, number: int) -> Path:
        return self.folder / f"n{number}.log"

    def events(self, number: int, name: str) -> list[Answer]:
        lines = [json.loads(line) for line in self.log(number).read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == name]

    async def answers(self, number: int) -> bool:
        if (code := self.nodes[number].poll()) is not None:
            raise RuntimeError(f"node {number} ended with {code}: {self.log(number).read_text()[-2000:]}")
        try:
            return bool((await self.client.call("GET", number, "/healthz"))["status"] == 200)
        except (aiohttp.ClientError, OSError, TimeoutError):
            return False

    async def ready(self, *numbers: int) -> None:
        for number in numbers:
            await until(partial(self.answers, number), 30)

    async def leader(self, number: int) -> Answer | None:
        """Returns the leader that a node shows, None when it is not valid."""
        seen = await self.client.get(number, "tc/leader")
        valid = seen.get("leader_endpoint") and seen.get("term") and seen.get("expires_at", 0) > time.time() * 1000
        return seen if valid else None

    async def agreed(self, *numbers: int) -> Answer | None:
        seen = [await self.leader(number) for number in numbers]
        names = {(each["leader_id"], each["term"]) if each else None for each in seen}
        return seen[0] if len(names) == 1 else None

    async def lists(self, number: int) -> list[str]:
        endpoints: list[str] = (await self.client.get(number, "tc/cluster/list"))["endpoints"]
        return endpoints

    async def all_listed(self, *numbers: int) -> bool:
        wanted = sorted(self.endpoint(number) for number in numbers)
        return all([await self.lists(number) == wanted for number in numbers])

    async def backends(self, number: int) -> dict[str, list[str]]:
        listing = await self.client.get(number, "tc/rm/list")
        return {each["backend_hash"]: each["endpoints"] for each in listing["backends"] or ()}

    def number_of(self, seen: Answer) -> int:
        return self.ports.index(int(seen["leader_endpoint"].rpartition(":")[2]))

    def signal(self, number: int, signum: signal.Signals) -> None:
        self.nodes[number].send_signal(signum)

    async def ended(self, number: int) -> int:
        process = self.nodes[number]

        async def gone() -> bool:
            return process.poll() is not None

        await until(gone)
        return process.returncode

    def print_logs(self) -> None:
        """Prints what the nodes logged, beside the failure."""
        for number in self.nodes:
            print(f"--- node {number}\n{self.log(number).read_text()[-6000:]}")  # noqa: T201  # shown with failures only

    def close(self) -> None:
        for process in self.nodes.values():
            process.send_signal(signal.SIGCONT)
            process.kill()
            process.wait()


@asynccontextmanager
async def world(nodes: int = 1, **settings: str) -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory(prefix="lockd-") as folder:
        made = World(Path(folder), settings)
        try:
            for _ in range(nodes):
                made.add()
            for number in range(nodes):
                made.start(number)
            await made.ready(*range(nodes))
            yield made
        except BaseException:
            made.print_logs()
            raise
        finally:
            made.close()


@asynccontextmanager
async def cluster(nodes: int = 3, **settings: str) -> AsyncIterator[World]:
    """Yields nodes that have equal lists and show the same leader."""
    async with world(nodes, **settings) as made:
        await until(partial(made.all_listed, *range(nodes)), 30)
        await until(partial(made.agreed, *range(nodes)), 30)
        yield made
