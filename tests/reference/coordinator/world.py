"""A Valkey with coordinators, and a test that plays workers, clients and ghosts."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from tests.reference import world as shared
from tests.reference.world import Answer, free_port

FAST = {
    "CO_LEASE_MS": "1500",
    "CO_RENEW_MS": "500",
    "CO_HEARTBEAT_MS": "300",
    "CO_DEAD_NODE_MS": "1200",
    "CO_ACK_TIMEOUT_MS": "400",
    "CO_HARD_TIMEOUT_MS": "6000",
    "CO_ORPHAN_CHECK_MS": "1000",
    "CO_ORPHAN_WAIT_MS": "1000",
    "CO_DISPATCH_SCAN_MS": "100",
    "CO_SCHEDULE_SCAN_MS": "100",
    "CO_TIMEOUT_SCAN_MS": "100",
    "CO_ELECT_POLL_MS": "100",
}
LOCK = "orchestrix:coordinator:leader"
BEATS = "orchestrix.coordinator.heartbeat"
HANDOFF = "orchestrix.job.handoff"
ASSIGNED = "orchestrix.job.assigned"
_SENT_AND_READ = """
redis.call('XADD', KEYS[1], '*', 'data', ARGV[2])
redis.call('XREADGROUP', 'GROUP', 'owner', ARGV[1], 'STREAMS', KEYS[1], '>')
"""
Payload = dict[str, Any]


async def until(condition: Callable[[], Awaitable[Any]], seconds: float = 40.0) -> Any:
    """Waits until the condition returns something true; long, because recovery on a busy machine takes its time."""
    return await shared.until(condition, seconds)


def job_id() -> str:
    return str(uuid.uuid4())


class World(shared.World):
    """The processes of one test. Node number 0 is called `n0`, and so on."""

    linked = -1
    """The node that reaches Redis through `link`; the others do directly."""

    def start_node(self, number: int, **own: str) -> None:
        port = self.link.port if number == self.linked else self.redis_port
        environment = {
            **os.environ,
            **FAST,
            "CO_REDIS_URL": f"redis://127.0.0.1:{port}/0",
            "CO_NODE_ID": f"n{number}",
            **self.settings,
            **own,
        }
        with self.log(number).open("ab") as log:
            words = [sys.executable, "-m", "holdfast.reference.coordinator"]
            self.nodes[number] = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    async def redis_is_up(self) -> bool:
        try:
            return bool(await self.redis("PING") == "PONG")
        except OSError:
            return False

    async def start(self, number: int, **own: str) -> None:
        """Starts a node and returns when it is a member."""
        before = self.starts(number)
        self.start_node(number, **own)
        await until(partial(self.has_started, number, before))

    def starts(self, number: int) -> int:
        return len(self.said(number, "node.ready"))

    async def has_started(self, number: int, before: int = 0) -> bool:
        return self.starts(number) > before

    def said(self, number: int, event: str) -> list[Answer]:
        if not self.log(number).exists():
            return []
        lines = (json.loads(line) for line in self.log(number).read_text().splitlines() if line.startswith("{"))
        return [each for each in lines if each["event"] == event]

    def signal(self, number: int, which: signal.Signals) -> None:
        self.nodes[number].send_signal(which)

    async def ended(self, number: int, seconds: float = 40.0) -> int:
        """Waits for the exit of a node and returns its status."""

        async def gone() -> bool:
            return self.nodes[number].poll() is not None

        await until(gone, seconds)
        return int(self.nodes[number].returncode)

    # What anybody may write.

    async def send(self, channel: str, payload: Payload) -> str:
        return str(await self.redis("XADD", channel, "*", "data", json.dumps(payload)))

    async def inject(self, job: str = "") -> str:
        """Offers the ownership of a job; returns its id."""
        job = job or job_id()
        await self.send(ASSIGNED, {"jobId": job, "historyId": str(uuid.uuid4())})
        return job

    async def status(self, job: str, status: str, **more: Any) -> str:
        return await self.send(f"orchestrix.job.{job}.status", {"jobId": job, "status": status, **more})

    async def say(self, job: str, *messages: str) -> None:
        for message in messages:
            await self.send(f"orchestrix.job.{job}.logs", {"jobId": job, "level": "Warning", "message": message})

    async def hold(self, job: str, owner: str, message: str) -> None:
        """Sends a line that is given to the owner in the same moment, as if it had read it and not come any further."""
        stream = f"orchestrix.job.{job}.logs"

        async def is_read() -> bool:  # the store names the owner before it has made its group
            groups = await self.redis("XINFO", "GROUPS", stream)
            return isinstance(groups, list) and bool(groups)

        await until(is_read)
        line = json.dumps({"jobId": job, "level": "Warning", "message": message})
        await self.redis("EVAL", _SENT_AND_READ, 1, stream, owner, line)

    async def beat(self, node: str, jobs: int = 0, status: str = "Active") -> None:
        await self.send(
            BEATS, {"nodeId": node, "jobCount": jobs, "status": status, "timestamp": "2020-01-01T00:00:00Z"}
        )

    async def acknowledge(self, waiting: str, job: str, new_owner: str | None = "ghost") -> None:
        named = {} if new_owner is None else {"newOwner": new_owner}
        await self.send(f"{HANDOFF}.ack.{waiting}", {"jobId": job, **named})

    async def enqueue(self, queue: str = "q1", due: int = 0, **fields: Any) -> str:
        """Writes a pending job into the store; returns its id."""
        job, record = job_id(), {"status": "Pending", "queue": queue, "jobType": "t", "arguments": "{}", **fields}
        words = [str(word) for pair in {"jobId": job, **record}.items() for word in pair]
        await self.redis("HSET", f"orchestrix:store:job:{job}", *words)
        await self.redis("ZADD", "orchestrix:store:jobs:pending", due, job)
        return job

    async def seed(self, owner: str, status: str = "Running", **fields: Any) -> str:
        """Writes a job of this owner into the store; returns its id."""
        job = job_id()
        record = {"jobId": job, "status": status, "historyId": job_id(), "ownerNode": owner, **fields}
        words = [str(word) for pair in record.items() for word in pair]
        await self.redis("HSET", f"orchestrix:store:job:{job}", *words)
        await self.redis("SADD", f"orchestrix:store:owner:{owner}", job)
        await self.redis("SADD", "orchestrix:store:owners", owner)
        await self.redis("SADD", "orchestrix:store:jobs:active", job)
        return job

    # What anybody may see.

    async def entries(self, channel: str) -> list[Payload]:
        return [json.loads(fields[1]) for _, fields in await self.redis("XRANGE", channel, "-", "+")]

    async def handoffs(self, job: str) -> list[Payload]:
        return [each for each in await self.entries(HANDOFF) if each.get("jobId") == job]

    async def job(self, job: str) -> dict[str, str]:
        words = await self.redis("HGETALL", f"orchestrix:store:job:{job}")
        return dict(zip(words[::2], words[1::2], strict=True))

    async def owner(self, job: str) -> str:
        return (await self.job(job)).get("ownerNode", "")

    async def jobs_of(self, node: str) -> set[str]:
        return set(await self.redis("SMEMBERS", f"orchestrix:store:owner:{node}"))

    async def logs(self, job: str) -> list[str]:
        return [
            json.loads(each)["message"] for each in await self.redis("LRANGE", f"orchestrix:store:joblog:{job}", 0, -1)
        ]

    async def leader(self) -> str:
        return str(await self.redis("GET", LOCK) or "").partition(":")[0]

    async def has_status(self, job: str, status: str) -> bool:
        return (await self.job(job)).get("status") == status

    async def owned(self, job: str, by: str = "") -> str:
        """Waits until a job has an owner, or this one, and returns the owner."""

        async def found() -> str:
            owner = await self.owner(job)
            return owner if owner and by in ("", owner) else ""

        return str(await until(found))

    async def taken(self, job: str) -> str:
        """Waits until the owner of a job knows that it owns it, which the store does first, and returns the owner."""
        owner = await self.owned(job)

        async def knows() -> bool:
            return any(each["jobId"] == job for each in self.said(int(owner[1:]), "job.owned"))

        await until(knows)
        return owner

    async def handed_off(self, job: str, times: int = 1) -> list[Payload]:
        """Waits until a job was offered so often, and returns the offers."""

        async def found() -> list[Payload]:
            offers = await self.handoffs(job)
            return offers if len(offers) >= times else []

        return list(await until(found))

    async def reaches(self, job: str, status: str) -> None:
        await until(partial(self.has_status, job, status))

    async def logged(self, job: str, *messages: str) -> None:
        async def there() -> bool:
            return await self.logs(job) == list(messages)

        try:
            await until(there)
        except TimeoutError:
            raise AssertionError(f"{job} has the logs {await self.logs(job)}") from None

    async def leads(self, *nodes: str) -> str:
        """Waits until one of these nodes leads, and returns which."""

        async def found() -> str:
            leader = await self.leader()
            return leader if leader in nodes else ""

        return str(await until(found))


@asynccontextmanager
async def world(nodes: int = 1, linked: int = -1, **settings: str) -> AsyncIterator[World]:
    """Starts a Valkey and nodes; the first is the leader. Ends all of them afterwards."""
    async with aiohttp.ClientSession() as http:
        with tempfile.TemporaryDirectory(prefix="coordinator-") as folder:
            made = World(Path(folder), http, settings)
            made.linked = linked
            try:
                made.link.listen()
                await until(made.redis_is_up)
                for number in range(nodes):
                    await made.start(number)
                    if not number:
                        await made.leads("n0")
                yield made
            finally:
                made.close()
                await made.link.close()
                await asyncio.sleep(0.01)  # the link's last sockets close on the loop


__all__ = ["ASSIGNED", "BEATS", "FAST", "HANDOFF", "LOCK", "World", "free_port", "job_id", "until", "world"]
