"""The target's Redis as the wire sheet lays it out; the descriptor may spell keys otherwise."""

import contextlib
import json
import re
import time
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.context import Context
from holdfast.timeline import Moment

TEMPLATES: Mapping[str, str] = {
    "session_char": "session:char:{}",
    "session_data": "session:data:{}",
    "session_instance": "session:instance:{}",
    "session_reconnect": "session:reconnect:{}",
    "session_heartbeat": "session:heartbeat:{}:{}",
    "session_drain": "session:drain:{}",
    "queue_pending": "queue:pending:{}",
    "queue_entry": "queue:entry:{}",
    "ratelimit_window": "ratelimit:window:{}",
    "ratelimit_lock": "ratelimit:lock:{}",
    "replacement": "replacement:{}",
    "character": "character:{}",
}


class Keys:
    """Reads by key name (`keys.name("session_char", c.id)`); every look is written into the transcript."""

    def __init__(self, context: Context, redis: "Redis") -> None:
        self.redis = redis
        self._context = context
        self._prefix = str(context.target.observe.get("prefix", ""))
        self._templates = {**TEMPLATES, **context.target.observe.get("keys", {})}

    @classmethod
    def of(cls, context: Context) -> Self:
        url = context.deployment.store_url
        redis = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=5)
        context.stack.push_async_callback(redis.aclose)
        return cls(context, redis)

    def name(self, key: str, *parts: str) -> str:
        template: str = self._templates[key]
        return self._prefix + template.format(*parts)

    def roots(self, *keys: str) -> tuple[str, ...]:
        """What the names of such keys begin with."""
        return tuple(self._prefix + self._templates[key].split("{", 1)[0] for key in keys)

    async def ask(self, command: str, *args: Any) -> Any:
        """One Redis command, noted as an observation."""
        value = await self.redis.execute_command(command, *args)  # type: ignore[no-untyped-call]  # untyped in redis-py
        self._context.transcript.note(f"redis {command} {' '.join(map(str, args))} = {value!r}")
        return value

    async def members(self, key: str, *parts: str) -> list[str]:
        """Members of a set, for sampling in a tight loop: looks are not noted one by one."""
        return sorted(map(str, await self.redis.smembers(self.name(key, *parts))))

    async def together(self, *commands: Sequence[str]) -> list[Any]:
        """Several commands in one transaction, so that what they read belongs together."""
        pipeline = self.redis.pipeline(transaction=True)
        for words in commands:
            pipeline.execute_command(*words)
        answers: list[Any] = await pipeline.execute()
        return answers

    async def now(self) -> float:
        """The Redis server's clock, in seconds."""
        seconds, microseconds = await self.redis.time()
        return float(seconds) + float(microseconds) / 1e6

    async def at(self, redis_ms: float) -> Moment:
        """When a time that the target has stored, in milliseconds of the Redis clock, is by our own."""
        asked = time.monotonic()
        ahead = redis_ms / 1000 - await self.now()
        return Moment(asked + ahead, time.monotonic() + ahead)

    async def snapshot(self, *patterns: str) -> dict[str, Any]:
        """All keys that match, with their values, for before-and-after comparisons."""
        found: dict[str, Any] = {}
        for pattern in patterns:
            async for key in self.redis.scan_iter(match=self._prefix + pattern, count=1000):
                found[key] = await self._value(key)
        return found

    async def record(self, key: str) -> dict[str, Any]:
        """The fields of a record, a JSON string or a hash; none when there is no such record or it is neither."""
        value = await self._value(key)
        with contextlib.suppress(TypeError, ValueError):
            value = json.loads(value)
        self._context.transcript.note(f"redis record {key} = {value!r}")
        return value if isinstance(value, dict) else {}

    async def _value(self, key: str) -> Any:
        kind = await self.redis.type(key)
        match kind:
            case "string":
                return await self.redis.get(key)
            case "set":
                return sorted(await self.redis.smembers(key))
            case "zset":
                return await self.redis.zrange(key, 0, -1, withscores=True)
            case "hash":
                return await self.redis.hgetall(key)
            case _:
                return kind

    @contextlib.asynccontextmanager
    async def recording(self) -> AsyncIterator[list["Command"]]:
        """Every command that Redis runs while the block lasts; the list is complete once the block has ended."""
        commands: list[Command] = []
        async with self.redis.monitor() as raw:
            yield commands
            end = f"end of recording {uuid.uuid4()}"
            await self.redis.echo(end)
            while end not in (command := Command.parse(await raw.connection.read_response())).words:
                commands.append(command)

    async def write_commands(self) -> frozenset[str]:
        """Names of the commands that change data, as this Redis classes them."""
        return frozenset(await self.redis.execute_command("ACL", "CAT", "write"))  # type: ignore[no-untyped-call]  # untyped in redis-py

    @contextlib.asynccontextmanager
    async def monitor(self) -> AsyncIterator["Monitor"]:
        """Every command that Redis runs while the block lasts."""
        async with self.redis.monitor() as raw:
            yield Monitor(raw)


class Monitor:
    def __init__(self, raw: Any) -> None:
        self._raw = raw

    async def next(self) -> str:
        command = await self._raw.next_command()
        return str(command["command"])


_MONITORED = re.compile(r"[\d.]+ \[\d+ (?P<client>\S+)\] (?P<words>.*)", re.DOTALL)
_WORD = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_INSIDE_A_SCRIPT = "lua"


@dataclass(frozen=True)
class Command:
    """One command as MONITOR shows it: who sent it, and its words with the quoting taken off."""

    client: str
    words: tuple[str, ...]

    @classmethod
    def parse(cls, line: str) -> Self:
        if (found := _MONITORED.match(line)) is None:
            return cls("", (line,))
        words = (word.replace('\\"', '"').replace("\\\\", "\\") for word in _WORD.findall(found["words"]))
        return cls(found["client"], tuple(words))

    @property
    def name(self) -> str:
        return self.words[0].lower()

    @property
    def in_script(self) -> bool:
        return self.client == _INSIDE_A_SCRIPT

    def mentions(self, text: str) -> bool:
        return any(text in word for word in self.words[1:])


def atomic_groups(commands: list[Command]) -> list[list[Command]]:
    """Commands that ran with nothing in between: a script with what it called, a transaction, or one command alone."""
    groups: list[list[Command]] = []
    transactions: dict[str, list[Command]] = {}
    for command in commands:
        if not groups or not (command.in_script or command.client in transactions):
            groups.append([])
        # Redis shows what stands in MULTI … EXEC when it runs; other clients may come between MULTI and that.
        group = transactions.get(command.client, groups[-1])
        group.append(command)
        if command.name == "multi":
            transactions[command.client] = group
        elif command.name in {"exec", "discard"}:
            transactions.pop(command.client, None)
    return groups
