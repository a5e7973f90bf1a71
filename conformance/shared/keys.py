"""Looks into the target's Redis by the spec's own key names; the descriptor may give other templates.

It reads over a connection of its own, directly and not through the links on which faults are put, so a check can see
what Redis holds while the nodes can't reach it. Commands are not retried: a retry would hide the moment at which Redis
was away. Values of every type can be read (`value`, `snapshot`): strings, sets, sorted sets, hashes, lists, streams.

Two ways of seeing commands are offered, both through MONITOR. `recording` gives all commands of a block, complete: a
mark is sent at the end and everything before it belongs to the block. `monitor.atomic_groups` then puts together what
ran with nothing in between, a script with the commands it called, a transaction, or a single command; so a check can
tell whether two changes were one step. `monitor` only streams commands, for checks that act on one as it happens.
"""

import contextlib
import json
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, ClassVar, Self

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from holdfast.check.context import Context
from holdfast.check.plain import plain
from holdfast.check.timeline import Moment
from holdfast.conformance.shared.monitor import Command, Monitor
from holdfast.target.deployment import Deployment

# How the whole value of each type is read.
_READ: Mapping[str, Callable[[Any, str], Awaitable[Any]]] = {
    "string": lambda redis, key: redis.get(key),
    "set": lambda redis, key: redis.smembers(key),
    "zset": lambda redis, key: redis.zrange(key, 0, -1, withscores=True),
    "hash": lambda redis, key: redis.hgetall(key),
    "list": lambda redis, key: redis.lrange(key, 0, -1),
    "stream": lambda redis, key: redis.xrange(key),
}
# The types of which Redis keeps no empty value.
_NEVER_EMPTY = frozenset({"set", "zset", "hash", "list"})


class Keys:
    """Names keys (`keys.name("session", id)`) and reads them; `ask` and `record` note what they see.

    A spec gives its key names in `templates`. A descriptor may give others (`[observe] keys`) and what they all begin
    with (`[observe] prefix`).
    """

    templates: ClassVar[Mapping[str, str]] = {}

    def __init__(self, context: Context, redis: "Redis") -> None:
        self.redis = redis
        self._context = context
        self._prefix = str(context.target.observe.get("prefix", ""))
        self._templates = {**self.templates, **context.target.observe.get("keys", {})}

    @classmethod
    def of(cls, context: Context, deployment: Deployment | None = None) -> Self:
        """Returns what looks into the Redis of the check's deployment, or of a further one."""
        url = (deployment or context.deployment).store_url
        redis = Redis.from_url(url, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=5)
        context.stack.push_async_callback(redis.aclose)
        return cls(context, redis)

    def name(self, key: str, *parts: str) -> str:
        """Returns the name of a key, with its template filled in."""
        template: str = self._templates[key]
        return self._prefix + template.format(*parts)

    def roots(self, *keys: str) -> tuple[str, ...]:
        """Returns what the names of such keys begin with."""
        return tuple(self._prefix + self._templates[key].split("{", 1)[0] for key in keys)

    async def ask(self, command: str, *args: Any) -> Any:
        """Runs one Redis command, notes it in the transcript, and returns its answer."""
        value = await self.redis.execute_command(command, *args)  # type: ignore[no-untyped-call]  # untyped in redis-py
        self._context.transcript.note(f"redis {command} {' '.join(map(str, args))} = {plain(value)}")
        return value

    async def members(self, key: str, *parts: str) -> list[str]:
        """Returns the members of a set, without a note in the transcript, for sampling in a tight loop."""
        return sorted(map(str, await self.redis.smembers(self.name(key, *parts))))

    async def together(self, *commands: Sequence[str]) -> list[Any]:
        """Runs several commands in one transaction, so that what they read belongs together."""
        pipeline = self.redis.pipeline(transaction=True)
        for words in commands:
            pipeline.execute_command(*words)
        answers: list[Any] = await pipeline.execute()
        return answers

    async def now(self) -> float:
        """Returns the Redis server's clock, in seconds."""
        seconds, microseconds = await self.redis.time()
        return float(seconds) + float(microseconds) / 1e6

    async def at(self, redis_ms: float) -> Moment:
        """Returns a time of the Redis clock, in milliseconds, on our monotonic clock."""
        asked = time.monotonic()
        ahead = redis_ms / 1000 - await self.now()
        return Moment(asked + ahead, time.monotonic() + ahead)

    async def snapshot(self, *patterns: str) -> dict[str, Any]:
        """Returns all keys that match, with their values, for comparisons of before and after."""
        found: dict[str, Any] = {}
        for pattern in patterns:
            async for key in self.redis.scan_iter(match=self._prefix + pattern, count=1000):
                found[key] = await self.value(key)
        return found

    async def record(self, key: str) -> dict[str, Any]:
        """Returns the fields of a record, stored as a JSON string or a hash; {} if there is no such record."""
        value = await self.value(key)
        with contextlib.suppress(TypeError, ValueError):
            value = json.loads(value)
        self._context.transcript.note(f"redis record {key} = {plain(value)}")
        return value if isinstance(value, dict) else {}

    async def value(self, key: str) -> Any:
        """Returns the whole value of a key in a form that compares: text, list, dict or pairs; of no key, "none"."""
        kind = str(await self.redis.type(key))
        value = await _READ[kind](self.redis, key) if kind in _READ else kind
        if value is None or (not value and kind in _NEVER_EMPTY):
            return "none"  # it went between the two commands
        return sorted(value) if kind == "set" else value

    @contextlib.asynccontextmanager
    async def recording(self) -> AsyncIterator[list[Command]]:
        """Gives a list that holds every command that Redis ran in the block, once the block has ended."""
        commands: list[Command] = []
        async with self.redis.monitor() as raw:
            yield commands
            end = f"end of recording {uuid.uuid4()}"
            await self.redis.echo(end)
            while end not in (command := Command.parse(await raw.connection.read_response())).words:
                commands.append(command)

    async def write_commands(self) -> frozenset[str]:
        """Returns the names of the commands that change data, as this Redis classifies them."""
        return frozenset(await self.redis.execute_command("ACL", "CAT", "write"))  # type: ignore[no-untyped-call]  # untyped in redis-py

    @contextlib.asynccontextmanager
    async def monitor(self) -> AsyncIterator[Monitor]:
        """Gives the commands that Redis runs during the block, one at a time."""
        async with self.redis.monitor() as raw:
            yield Monitor(raw)
