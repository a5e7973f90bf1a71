"""The channels of the cluster as a check reads and writes them: streams, topics, and when each entry was written.

Queues are streams, topics are streams or PUBLISH, as the descriptor says. Entries are read without a group, so looking
changes nothing, and each stream is read on from where the last look ended. Topics of PUBLISH are heard from `open` on.

**Times.** An entry's id is the time of the clock of Redis at which it was written. `at` is that time on our monotonic
clock, as an interval: the two clocks are compared again every few seconds. Of a topic of PUBLISH it is the
time of receipt.

**Which entries.** On a deployment that is the check's own everything in Redis counts, also what was written before the
check began. On a shared one, and on a target that others run, only what was written since.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from redis.asyncio import Redis
from redis.exceptions import RedisError

from holdfast.check.context import Context
from holdfast.check.plain import plain
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.wire import (
    ACK,
    BEAT,
    TOPICS,
    WORKER_BEAT,
    Message,
    Names,
    decode,
    encode,
    milliseconds_of,
)
from holdfast.conformance.shared.keys import Keys

_DATA = "data"
_MILLISECOND = 0.001
# Seconds after which the two clocks are compared again, and how often they are each time.
_COMPARE_EVERY, _COMPARISONS = 5.0, 3
# Seconds of one wait for the next message of a topic.
_LISTEN = 0.5


@dataclass(frozen=True)
class Entry:
    """One entry of a channel; `id` is "" for a message of PUBLISH."""

    kind: str
    channel: str
    id: str
    fields: Mapping[str, str]
    message: Message
    at: Moment

    def describe(self) -> str:
        return f"{self.channel} {self.id} {self.message.describe()}"


@dataclass(frozen=True)
class Post:
    """Something to be published: what kind of channel, which one (`ids`), and the message."""

    kind: str
    payload: Mapping[str, Any]
    ids: Mapping[str, str]


def post(kind: str, payload: Mapping[str, Any], **ids: str) -> Post:
    return Post(kind, payload, ids)


class Clock:
    """The clock of Redis on our monotonic one."""

    def __init__(self, redis: "Redis") -> None:
        self._redis = redis
        self._ahead = (0.0, 0.0)
        self._compared = -_COMPARE_EVERY

    async def compare(self) -> None:
        """Compares the clocks, unless that was done a moment ago; of several tries the closest counts."""
        if time.monotonic() - self._compared < _COMPARE_EVERY:
            return
        tries = [await self._ahead_by() for _ in range(_COMPARISONS)]
        self._ahead = min(tries, key=lambda each: each[1] - each[0])
        self._compared = time.monotonic()

    async def _ahead_by(self) -> tuple[float, float]:
        asked = time.monotonic()
        seconds, microseconds = await self._redis.time()
        theirs = int(seconds) + int(microseconds) / 1e6
        return asked - theirs, time.monotonic() - theirs

    def moment(self, milliseconds: float) -> Moment:
        """Returns a time of Redis in whole milliseconds as a moment of ours."""
        seconds = milliseconds * _MILLISECOND
        return Moment(seconds + self._ahead[0], seconds + _MILLISECOND + self._ahead[1])

    def milliseconds(self, moment: Moment) -> int:
        """Returns a moment of ours by the clock of Redis."""
        return round((moment.hi - self._ahead[0]) / _MILLISECOND)


class Bus(Keys):
    """Reads and writes the channels of one deployment; `names` says what they are called."""

    def __init__(self, context: Context, redis: "Redis") -> None:
        super().__init__(context, redis)
        self.names = Names(context.target.dialect.get("names", "seed"))
        self.pubsub = context.target.dialect.get("topics", "stream") == "pubsub"
        self.clock = Clock(redis)
        # Called with each entry when it is read for the first time.
        self.listeners: list[Callable[[Entry], None]] = []
        self._everything = context.target.startable and context.spec.isolation != "shared"
        self._begin = "0-0"
        self._read: dict[str, list[Entry]] = {}
        self._heard: dict[str, list[Entry]] = {}

    async def open(self) -> Self:
        """Compares the clocks, notes where the check begins, and listens to topics that are no streams."""
        await self.clock.compare()
        if not self._everything:
            self._begin = f"{int(await self.now() / _MILLISECOND)}-0"
        if self.pubsub:
            await self._listen()
        return self

    # --- writing

    async def publish(self, kind: str, payload: Mapping[str, Any], **ids: str) -> Moment:
        """Writes a message to a channel; returns when: its entry time, or the time of sending on a topic of PUBLISH."""
        (moment,) = await self.publish_all([post(kind, payload, **ids)])
        return moment

    async def publish_all(self, posts: Sequence[Post]) -> list[Moment]:
        """Writes messages in one step (MULTI), so that readers find all of them at once."""
        asked = time.monotonic()
        commands = [self._command(each.kind, encode(each.payload), each.ids) for each in posts]
        for words in commands:
            self._context.transcript.sent(f"{words[1]} {words[-1]}")
        answers = await self.together(*commands)
        await self.clock.compare()
        sent = Moment(asked, time.monotonic())
        return [
            self.clock.moment(milliseconds_of(answer)) if words[0] == "XADD" else sent
            for words, answer in zip(commands, answers, strict=True)
        ]

    async def publish_text(self, kind: str, data: str, **ids: str) -> None:
        """Writes an entry with this text as its data, JSON or not."""
        await self.ask(*self._command(kind, data, ids))

    async def publish_fields(self, kind: str, fields: Mapping[str, str], **ids: str) -> str:
        """Writes an entry of a queue with these fields; returns its id."""
        words = [word for pair in fields.items() for word in pair]
        return str(await self.ask("XADD", self.names.channel(kind, **ids), "*", *words))

    def _command(self, kind: str, data: str, ids: Mapping[str, str]) -> tuple[str, ...]:
        channel = self.names.channel(kind, **ids)
        if self.pubsub and kind in TOPICS:
            return ("PUBLISH", channel, data)
        return ("XADD", channel, "*", _DATA, data)

    # --- reading

    async def entries(self, kind: str, **ids: str) -> list[Entry]:
        """Returns all entries of a channel so far, oldest first."""
        channel = self.names.channel(kind, **ids)
        if self.pubsub and kind in TOPICS:
            return list(self._heard.get(channel, ()))
        known = self._read.setdefault(channel, [])
        after = known[-1].id if known else ""
        found: Any = await self.redis.xrange(channel, min=f"({after}" if after else self._begin)
        if found:
            await self.clock.compare()
            # Another look of the same check may have read on meanwhile.
            last = _order(known[-1].id) if known else (-1, -1)
            for id_, fields in found:
                if _order(id_) > last:
                    known.append(self._entry(kind, channel, id_, fields))
        return list(known)

    async def channels(self, kind: str) -> dict[str, dict[str, str]]:
        """Returns the names of all channels of this kind that exist, with what stands for their placeholders."""
        if self.pubsub and kind in TOPICS:
            names: Iterable[str] = list(self._heard)
        else:
            names = [str(key) async for key in self.redis.scan_iter(match=self.names.pattern(kind), count=1000)]
        found = ((name, self.names.ids_in(kind, name)) for name in names)
        return {name: ids for name, ids in found if ids is not None}

    async def all_entries(self, kind: str) -> list[Entry]:
        """Returns the entries of all channels of this kind, in the order in which they were written."""
        found = [entry for ids in (await self.channels(kind)).values() for entry in await self.entries(kind, **ids)]
        return sorted(found, key=lambda entry: entry.at.lo)

    async def length(self, kind: str, **ids: str) -> int:
        """Returns how many entries a queue holds, whoever wrote them."""
        return int(await self.redis.xlen(self.names.channel(kind, **ids)))

    def _entry(self, kind: str, channel: str, id_: str, fields: Mapping[str, str]) -> Entry:
        at = self.clock.moment(milliseconds_of(id_))
        return self._new(Entry(kind, channel, id_, fields, decode(fields.get(_DATA)), at))

    def _new(self, entry: Entry) -> Entry:
        if self._everything:
            self._context.transcript.add("←", entry.describe, at=entry.at.lo)
        for listener in self.listeners:
            listener(entry)
        return entry

    # --- topics of PUBLISH

    async def _listen(self) -> None:
        subscription = self.redis.pubsub()
        await subscription.psubscribe(*(self.names.pattern(kind) for kind in sorted(TOPICS)))
        hearing = asyncio.ensure_future(self._hear(subscription))

        async def end() -> None:
            hearing.cancel()
            await asyncio.gather(hearing, return_exceptions=True)
            await subscription.aclose()  # type: ignore[no-untyped-call]  # untyped in redis-py

        self._context.stack.push_async_callback(end)

    async def _hear(self, subscription: Any) -> None:
        while True:
            try:
                message = await subscription.get_message(ignore_subscribe_messages=True, timeout=_LISTEN)
            except (RedisError, OSError) as lost:
                self._context.transcript.note(f"topics are not heard: {plain(str(lost))}")
                with contextlib.suppress(RedisError, OSError):
                    await subscription.connect()
                await asyncio.sleep(_LISTEN)
                continue
            if message:
                self._take(str(message["channel"]), str(message["data"]))

    def _take(self, channel: str, data: str) -> None:
        # The topic of ACKs comes first: in some spellings the patterns of two kinds fit one name.
        kind = next((each for each in (ACK, BEAT, WORKER_BEAT) if self.names.ids_in(each, channel) is not None), "")
        if kind:
            entry = Entry(kind, channel, "", {_DATA: data}, decode(data), Moment.now())
            self._heard.setdefault(channel, []).append(self._new(entry))


def _order(entry_id: str) -> tuple[int, int]:
    first, _, second = entry_id.partition("-")
    return int(first), int(second or 0)
