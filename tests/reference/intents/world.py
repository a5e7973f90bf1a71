"""A Valkey with API and worker processes of the intents reference, and clients with tokens."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from tests.reference import world as shared
from tests.reference.world import Answer, free_port, until

CURRENT = "holdfast-idem-current-000000000001"
PREVIOUS = "holdfast-idem-previous-00000000001"
TOKENS = [
    {"token": "writes", "scopes": ["v3:write"], "user": "w"},
    {"token": "reads", "scopes": ["v3:read"], "user": "r"},
    {"token": "administers", "scopes": ["V3:admin "], "user": "a"},
    {"token": "nearly", "scopes": ["v3:write-preview", "xv3:write", "v3:status"], "user": "n"},
]
TTL = 1.5
FAST = {
    "XG2G_API_TOKENS": json.dumps(TOKENS),
    "XG2G_V3_API_LEASES": "false",
    "XG2G_IDEM_SECRET": CURRENT,
    "XG2G_LEASE_TTL": str(TTL),
    "XG2G_LEASE_RENEW_EVERY": "0.5",
    "XG2G_TUNER_SLOTS": "0,1",
}
W = {"Authorization": "Bearer writes"}
RO = {"Authorization": "Bearer reads"}
INTENTS = "/api/v3/intents"


def channel() -> str:
    return f"1:0:19:{uuid.uuid4().hex[:8]}:3EF:1:c00000:0:0:0:"


class World(shared.World):
    """The processes of one test: those in `roles`, by number. `settings` of a number are for it alone."""

    def __init__(self, folder: Path, http: aiohttp.ClientSession, roles: list[str], settings: dict[str, str]) -> None:
        super().__init__(folder, http, settings)
        self.roles = roles
        self.own: dict[int, dict[str, str]] = {}
        self.ports = [free_port() for _ in roles]
        for number in range(len(roles)):
            self.log(number).touch()

    def start_node(self, number: int) -> None:
        environment = {
            **os.environ,
            **FAST,
            **self.settings,
            "XG2G_LISTEN": f"127.0.0.1:{self.ports[number]}",
            "XG2G_REDIS_URL": f"redis://127.0.0.1:{self.redis_port}/0",
            "XG2G_WORKER_ID": f"{self.roles[number]}-{number}",
            **self.own.get(number, {}),
        }
        with self.log(number).open("ab") as log:
            words = [sys.executable, "-m", "holdfast.reference.intents", self.roles[number]]
            self.nodes[number] = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    async def restart(self, number: int, **own: str) -> None:
        self.own[number] = own
        self.kill_node(number)
        before = self.starts(number)
        self.start_node(number)
        await until(partial(self.up, number, before), 15)

    def starts(self, number: int) -> int:
        """Returns how often a worker has come up."""
        return len([each for each in self.events("worker.ready") if each["node"] == f"worker-{number}"])

    async def up(self, number: int, starts_before: int = 0) -> bool:
        if self.roles[number] == "worker":
            return self.starts(number) > starts_before
        try:
            return bool((await self.call("GET", "/readyz", {}, node=number))["status"] == 200)
        except aiohttp.ClientError:
            return False

    async def post(self, body: Any, headers: dict[str, str] | None = None, node: int = 0) -> Answer:
        """Posts an intent, as JSON or as the text that is given; `code` is the status of HTTP."""
        url = f"http://127.0.0.1:{self.ports[node]}{INTENTS}"
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with self.http.post(url, data=io.BytesIO(data), headers=W if headers is None else headers) as response:
            return {"http": response.status, "headers": response.headers, **await response.json(content_type=None)}

    async def start(self, ref: str, profile: str = "universal", node: int = 0, **more: Any) -> Answer:
        return await self.post({"type": "stream.start", "serviceRef": ref, "profileID": profile, **more}, node=node)

    async def vod(self, recording: str, ms: int, profile: str = "universal") -> Answer:
        return await self.post({"recordingId": recording, "profileID": profile, "startMs": ms})

    async def stop(self, session: str) -> Answer:
        return await self.post({"type": "stream.stop", "sessionId": session})

    async def poll(self, session: str, node: int = 0) -> Answer:
        return await self.call("GET", f"/api/v3/sessions/{session}", RO, node=node)

    async def seen(self, session: str) -> tuple[str, str]:
        """Returns state and reason of a session, also of one that has ended."""
        answer = await self.poll(session)
        return answer["state"], answer["reason"]

    async def shows(self, session: str, state: str, reason: str = "") -> None:
        async def there() -> bool:
            seen = await self.seen(session)
            return seen[0] == state and reason in ("", seen[1])

        try:
            await until(there)
        except TimeoutError:
            raise AssertionError(f"{session} is {await self.seen(session)}, wanted {state} {reason}") from None

    async def ready(self, ref: str, profile: str = "universal") -> str:
        """Returns the id of a session that has been started and is READY."""
        answer = await self.start(ref, profile)
        assert answer["http"] == 202, answer
        await self.shows(answer["sessionId"], "READY")
        return str(answer["sessionId"])

    async def ended(self, ref: str, profile: str, reason: str) -> str:
        """Returns the id of a session that has been started and ends with this reason."""
        session = str((await self.start(ref, profile))["sessionId"])
        await self.shows(session, "FAILED", reason)
        return session

    async def leases(self) -> dict[str, str]:
        return {name: await self.redis("GET", name) for name in sorted(await self.redis("KEYS", "lease:*"))}

    async def snapshot(self) -> list[Any]:
        """Returns all that a refused request must leave as it is."""
        kinds = ("session:*", "idem:*", "lease:*")
        names = sorted([name for kind in kinds for name in await self.redis("KEYS", kind)])
        hashes = [await self.redis("HGETALL", name) for name in names if name.startswith("session:")]
        runs, bus = await self.redis("HGETALL", "fake:runs"), await self.redis("XRANGE", "bus:session", "-", "+")
        return [names, hashes, runs, bus]

    async def steer(self, ref: str, **how: Any) -> None:
        await self.redis("HSET", "fake:pipeline", ref, json.dumps(how))

    async def runs(self, ref: str) -> int:
        return int(await self.redis("HGET", "fake:runs", ref) or 0)


@asynccontextmanager
async def world(apis: int = 1, workers: int = 1, **settings: str) -> AsyncIterator[World]:
    """Starts a Valkey, APIs and workers, and ends them afterwards. All workers but the first are standbys."""
    roles = ["api"] * apis + ["worker"] * workers
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        with tempfile.TemporaryDirectory(prefix="intents-") as folder:
            made = World(Path(folder), http, roles, settings)
            try:
                for number in range(len(roles)):
                    if number > apis:
                        made.own[number] = {"XG2G_WORKER_STARTUP_FLUSH": "false"}
                        await until(partial(made.up, apis), 15)
                    made.start_node(number)
                for number in range(len(roles)):
                    await until(partial(made.up, number), 15)
                yield made
            finally:
                made.close()
                await asyncio.sleep(0.01)


__all__ = ["CURRENT", "PREVIOUS", "RO", "TTL", "W", "World", "channel", "until", "world"]
