"""Records what happens to the keys of a deployment's Redis, and when; answers questions about it afterwards.

A check asks for `keys: Keyspace` and the recorder is connected before the check begins. Later it asks, for example,
`await keys.written("lock", since=moment)` or `await keys.events("job:*", since=a, until=b)`.

**Times.** Redis does not say when it changed a key. So the recorder sends a mark every few milliseconds and notes when;
the mark comes back in the same stream as the changes (`keyspace_feed`). A change behind a mark happened
after the mark was sent, and before we read it: that is its interval. If our loop or the machine is late, intervals grow
wider; they never become wrong. A key that expires is removed some time after its end, so the interval of `expired`
begins earlier: at the end that was read with `watch`, else at the last change of the key.

**Completeness.** What happened before a mark was sent is recorded once the mark is back. So a question first waits for
a mark that was sent after the end of the time that it asks about. A connection that is lost leaves a gap, from the last
mark that came back until the recorder is connected again, and so does a server that stops telling. A question about a
time with a gap in it raises `Inconclusive`: that nothing was seen then proves nothing. `receipt` says how it was.

**Values** are read only of keys that `watch` names, right after each change, on a connection of their own. What is read
is what was there at the moment of reading, which may be the work of a later change.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from redis.exceptions import RedisError

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, NotObservable
from holdfast.check.keyspace_feed import Change, Feed, Mark, Monitored, Notifications
from holdfast.check.redis_wire import RedisWire, connected
from holdfast.check.timeline import Moment
from holdfast.target.deployment import Deployment
from holdfast.target.fault import Receipt

GONE = frozenset({"del", "expired", "evicted", "rename_from", "move_from"})
# What changes only how long a key lives, or says that it is gone.
NO_WRITE = GONE | {"expire", "persist"}
_NEVER_MONITORED = frozenset({"expired", "evicted"})
_PULSE = 0.01
_AGAIN_AFTER = 0.02
_PATIENCE = 5.0
# PTTL counts whole milliseconds.
_MILLISECOND = 0.001
# How to read the whole value of each type.
_READ: dict[str, tuple[str, ...]] = {
    "string": ("GET",),
    "hash": ("HGETALL",),
    "set": ("SMEMBERS",),
    "list": ("LRANGE", "0", "-1"),
    "zset": ("ZRANGE", "0", "-1", "WITHSCORES"),
    "stream": ("XRANGE", "-", "+"),
}


@dataclass(frozen=True)
class Reading:
    """What a key held, and how long it had to live (None: without end), when it was read."""

    value: Any
    lives: float | None
    moment: Moment


@dataclass
class KeyEvent:
    """One change. From MONITOR it is an `attempt`: the command was sent, and may have changed nothing."""

    key: str
    kind: str
    moment: Moment
    attempt: bool = False
    reading: Reading | None = None


@dataclass
class Span:
    """A time in which everything was recorded; `until` is None while it lasts."""

    since: float
    until: float | None = None


class Keyspace:
    """The recorder of one deployment. Times are those of the monotonic clock, as in every `Moment`."""

    def __init__(self, deployment: Deployment, *, monitor: bool = False) -> None:
        self._deployment = deployment
        self._monitor = monitor
        self._events: list[KeyEvent] = []
        self._spans: list[Span] = []
        self._proven = 0.0  # everything that happened before is recorded, as long as the span lasts
        self._verified = 0.0
        self._sent: dict[int, float] = {}
        self._number = 0
        self._feed: Feed | None = None
        self._advanced = asyncio.Event()
        self._watched: list[str] = []
        self._unread: asyncio.Queue[KeyEvent] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def provide(cls, context: Context) -> Self:
        """Returns a recorder that is connected, and that the context closes."""
        keys = cls(context.deployment)
        context.stack.push_async_callback(keys.close)
        await keys.start()
        context.stack.callback(lambda: context.transcript.note(keys.receipt().seen))
        return keys

    async def start(self) -> None:
        """Connects. Raises NotObservable where there is no Redis to look into, Inconclusive if it can't be reached."""
        if not self._deployment.store_url:
            raise NotObservable("[observe] redis")
        self._tasks = [asyncio.create_task(self._keep_recording()), asyncio.create_task(self._read_values())]
        if not await self._wait(lambda: bool(self._spans), _PATIENCE):
            raise Inconclusive(f"the recorder could not connect to Redis within {_PATIENCE:g} s")

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def watch(self, *patterns: str) -> None:
        """From now on reads the value and the life time of each key like this, after each change."""
        self._watched += patterns

    async def events(
        self, pattern: str = "*", *kinds: str, since: Moment | None = None, until: Moment | None = None
    ) -> list[KeyEvent]:
        """Returns the changes of keys like this that may have happened between two moments, in their order.

        Without `since` from the beginning of the recording, without `until` up to now. Of `kinds`, if any are named.
        Raises Inconclusive where the recorder has not seen all of that time.
        """
        begin = since.lo if since else self._spans[0].since
        end = until.hi if until else time.monotonic()
        await self._must_have_seen(begin, end)
        self._must_be_visible(kinds)
        return [
            event
            for event in self._events
            if (not kinds or event.kind in kinds)
            and event.moment.hi >= begin
            and event.moment.lo <= end
            and fnmatchcase(event.key, pattern)
        ]

    async def written(self, key: str, *, since: Moment | None = None) -> KeyEvent | None:
        """Returns the first change that gave the key a value; None if there was none."""
        found = await self.events(_literal(key), since=since)
        return next((event for event in found if event.kind not in NO_WRITE), None)

    async def expired(self, key: str, *, since: Moment | None = None) -> KeyEvent | None:
        """Returns when the key first ended by its life time; None if it did not."""
        return next(iter(await self.events(_literal(key), "expired", since=since)), None)

    async def deleted(self, key: str, *, since: Moment | None = None) -> KeyEvent | None:
        """Returns when the key was first deleted by a command; None if it was not."""
        return next(iter(await self.events(_literal(key), "del", since=since)), None)

    async def next(self, pattern: str, *kinds: str, since: Moment, give_up: float) -> KeyEvent | None:
        """Waits for a change that happened surely after `since`; returns None after `give_up` seconds."""

        def found() -> KeyEvent | None:
            fitting = (event for event in self._events if event.moment.lo >= since.hi)
            return next((e for e in fitting if fnmatchcase(e.key, pattern) and (not kinds or e.kind in kinds)), None)

        self._must_be_visible(kinds)
        await self._wait(lambda: found() is not None, give_up)
        if (event := found()) is None:
            await self._must_have_seen(since.hi, time.monotonic())
        return event

    def receipt(self) -> Receipt:
        """Says whether the recorder was connected throughout, how much it saw, and how well it knows when."""
        how = self._feed.name if self._feed else "not connected"
        if not self._spans:
            return Receipt("keyspace recorder: never connected", proven=False)
        widest = max((event.moment.hi - event.moment.lo for event in self._events), default=0.0)
        gaps = "; ".join(f"not connected for {end - begin:.3f} s" for begin, end in self._gaps())
        seen = f"keyspace recorder ({how}): {len(self._events)} changes, each known to {widest * 1000:.0f} ms or better"
        return Receipt(f"{seen}; {gaps or 'connected throughout'}", proven=not gaps)

    def _gaps(self) -> Iterable[tuple[float, float]]:
        ends = [*(span.since for span in self._spans[1:]), time.monotonic()]
        return [(span.until, end) for span, end in zip(self._spans, ends, strict=True) if span.until is not None]

    async def _must_have_seen(self, begin: float, end: float) -> None:
        """Waits until everything before `end` is recorded. Raises Inconclusive where a part of it can't be."""
        if end > time.monotonic():
            raise ValueError("a question about the future; wait until then, or use `next`")
        await self._wait(lambda: self._spans[-1].until is None and self._proven >= end, _PATIENCE)
        await self._verify()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE):
                await self._unread.join()
        for span in self._spans:
            if span.since <= begin and end <= (self._proven if span.until is None else span.until):
                return
        raise Inconclusive(f"the recorder of keys has not seen all of the time asked about: {self.receipt().seen}")

    def _must_be_visible(self, kinds: Iterable[str]) -> None:
        if isinstance(self._feed, Monitored) and _NEVER_MONITORED & set(kinds):
            raise NotObservable("[[node]] start with {redis}, or notify-keyspace-events AE in your Redis")

    async def _wait(self, holds: Any, limit: float) -> bool:
        """Looks again after each item of the feed, until it holds or the time is up; returns whether it holds."""
        until = time.monotonic() + limit
        while not holds() and (left := until - time.monotonic()) > 0:
            self._advanced.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, 5 * _PULSE)):
                    await self._advanced.wait()
        return bool(holds())

    async def _keep_recording(self) -> None:
        while True:
            with contextlib.suppress(RedisError, OSError, EOFError):
                await self._record()
            self._end_span(self._proven)
            await asyncio.sleep(_AGAIN_AFTER)

    async def _record(self) -> None:
        """Records over one connection, until it is lost or the deployment has another Redis."""
        began = time.monotonic()
        async with asyncio.timeout(_PATIENCE):
            feed = await self._open()
        self._feed = feed
        self._proven, self._sent = began, {}
        self._verified = time.monotonic()
        self._spans.append(Span(self._verified))
        pulse = asyncio.create_task(self._mark_again_and_again(feed, self._deployment.store_url))
        try:
            while True:
                for item in await feed.read():
                    self._take(item)
                self._advanced.set()
        finally:
            pulse.cancel()
            await asyncio.gather(pulse, return_exceptions=True)
            await feed.close()

    async def _open(self) -> Feed:
        url, ours = self._deployment.store_url, self._deployment.store is not None
        told = None if self._monitor else await Notifications.open(url, deadline=_PATIENCE, ours=ours)
        return told or await Monitored.open(url, deadline=_PATIENCE)

    async def _mark_again_and_again(self, feed: Feed, url: str) -> None:
        """Sends a mark when the last one is back. Closes the feed when the deployment has moved to another Redis."""
        with contextlib.suppress(RedisError, OSError):
            while self._deployment.store_url == url:
                if not self._sent:
                    self._number += 1
                    self._sent[self._number] = time.monotonic()
                    await feed.mark(self._number)
                await asyncio.sleep(_PULSE)
        await feed.close()

    def _take(self, item: Change | Mark) -> None:
        if isinstance(item, Mark):
            self._proven = self._sent.pop(item.number, self._proven)
            return
        lo = self._earliest_end(item.key) if item.kind == "expired" else self._proven
        moment = Moment(min(lo, self._proven), time.monotonic())
        event = KeyEvent(item.key, item.kind, moment, attempt=isinstance(self._feed, Monitored))
        self._events.append(event)
        if any(fnmatchcase(item.key, pattern) for pattern in self._watched):
            self._unread.put_nowait(event)

    def _earliest_end(self, key: str) -> float:
        """Returns a moment before which the key has surely not expired."""
        last = next((event for event in reversed(self._events) if event.key == key), None)
        if last is None:
            return self._spans[-1].since
        if last.reading and last.reading.lives is not None:
            return last.reading.moment.lo + last.reading.lives
        return last.moment.lo

    async def _verify(self) -> None:
        """Notes a gap since the last look where the server no longer tells everything."""
        if self._feed is None or self._spans[-1].until is not None:
            return
        looked = time.monotonic()
        try:
            tells = await self._feed.still_tells()
        except (RedisError, OSError):
            return  # lost; the reading task notices it and ends the span
        if tells:
            self._verified = looked
        else:
            self._end_span(self._verified)
            await self._feed.close()

    def _end_span(self, until: float) -> None:
        if self._spans and self._spans[-1].until is None:
            self._spans[-1].until = max(until, self._spans[-1].since)

    async def _read_values(self) -> None:
        while True:
            event = await self._unread.get()
            try:
                async with asyncio.timeout(_PATIENCE):
                    event.reading = await read_key(self._deployment.store_url, event.key)
            except (RedisError, OSError):
                pass  # a value that could not be read is missing, and the event says so
            finally:
                self._unread.task_done()


async def read_key(url: str, key: str) -> Reading:
    """Reads a key of any type, and how long it has to live."""
    async with connected(url, deadline=_PATIENCE, maps=True) as wire:
        began = time.monotonic()
        kind = str(await wire.ask("TYPE", key))
        value = await _value(wire, key, kind)
        left = int(await wire.ask("PTTL", key))
    lives = left * _MILLISECOND if left >= 0 else None
    return Reading(value, lives, Moment(began, time.monotonic()))


async def _value(wire: RedisWire, key: str, kind: str) -> Any:
    if kind not in _READ:
        return None
    command, *rest = _READ[kind]
    return await wire.ask(command, key, *rest)


def _literal(key: str) -> str:
    """A pattern that fits this key only."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in key)
