"""The target's Redis as the wire sheet lays it out; the descriptor may spell keys otherwise."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.context import Context

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
        store = context.deployment.store
        url = store.url if store is not None else str(context.target.observe["redis"])
        redis = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=5)
        context.stack.push_async_callback(redis.aclose)
        return cls(context, redis)

    def name(self, key: str, *parts: str) -> str:
        template: str = self._templates[key]
        return self._prefix + template.format(*parts)

    async def ask(self, command: str, *args: Any) -> Any:
        """One Redis command, noted as an observation."""
        value = await self.redis.execute_command(command, *args)  # type: ignore[no-untyped-call]  # untyped in redis-py
        self._context.transcript.note(f"redis {command} {' '.join(map(str, args))} = {value!r}")
        return value

    async def now(self) -> float:
        """The Redis server's clock, in seconds."""
        seconds, microseconds = await self.redis.time()
        return float(seconds) + float(microseconds) / 1e6

    async def snapshot(self, *patterns: str) -> dict[str, Any]:
        """All keys that match, with their values, for before-and-after comparisons."""
        found: dict[str, Any] = {}
        for pattern in patterns:
            async for key in self.redis.scan_iter(match=self._prefix + pattern, count=1000):
                found[key] = await self._value(key)
        return found

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
