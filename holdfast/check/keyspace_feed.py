"""Where the changes of keys come from: notifications of Redis, or, where those can't be had, MONITOR.

A feed is one stream of items in the order in which Redis did things: changes of keys, and marks. A mark is something
that we sent and that comes back in the stream, so whatever is behind it in the stream happened after it was sent,
and whatever happened before it was sent is in front of it. That is all that times are made of.

Notifications tell what really changed, keys that expired included. They have to be switched on in the server, so we do
that only to a Redis that Holdfast runs, without taking away what the target has switched on itself; another one is used
if it has them already. FLUSHDB and FLUSHALL are not notified.

MONITOR tells which commands were sent. A command that changed nothing (a SET NX on a key that is there) looks like one
that did, and keys that expire are not seen at all. Commands inside scripts and transactions are.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self
from urllib.parse import urlsplit

from redis.exceptions import ResponseError

from holdfast.check.redis_wire import RedisWire

_MONITORED = re.compile(r"[\d.]+ \[(?P<database>\d+) (?P<client>\S+)\] (?P<words>.*)", re.DOTALL)
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_MARK = "holdfast-mark:"
_SETTING = "notify-keyspace-events"
# Commands whose notification has another name.
_SAME = {
    "setex": "set",
    "psetex": "set",
    "setnx": "set",
    "getset": "set",
    "mset": "set",
    "msetnx": "set",
    "unlink": "del",
    "getdel": "del",
    "hmset": "hset",
    "pexpire": "expire",
    "expireat": "expire",
    "pexpireat": "expire",
    "incr": "incrby",
    "decr": "decrby",
}


@dataclass(frozen=True)
class Change:
    """A key that was changed, or, from MONITOR, that a command meant to change."""

    key: str
    kind: str


@dataclass(frozen=True)
class Mark:
    number: int


class Feed(Protocol):
    """One connected stream of items. Its methods raise RedisError or OSError once the connection is lost."""

    @property
    def name(self) -> str: ...

    async def mark(self, number: int) -> None:
        """Sends a mark."""

    async def read(self) -> list[Change | Mark]:
        """Waits for what comes next; an empty list for something that means nothing to us."""

    async def still_tells(self) -> bool:
        """Whether the server still tells everything."""

    async def close(self) -> None: ...


def database(url: str) -> int:
    return int(urlsplit(url).path.strip("/") or 0)


class Notifications:
    """Keyspace notifications, with answers to PING as marks: a subscriber gets both in order."""

    name = "notifications"

    def __init__(self, wire: RedisWire, side: RedisWire) -> None:
        self._wire = wire
        self._side = side

    @classmethod
    async def open(cls, url: str, *, deadline: float, ours: bool) -> Self | None:
        """Returns None where the server has them switched off and we may not, or can't, switch them on."""
        async with _both(url, deadline) as (wire, side, keep):
            if not await _switched_on(side, ours=ours):
                return None
            await wire.ask("PSUBSCRIBE", f"__keyevent@{database(url)}__:*")
            keep.pop_all()
            return cls(wire, side)

    async def mark(self, number: int) -> None:
        await self._wire.send("PING", f"{_MARK}{number}")

    async def read(self) -> list[Change | Mark]:
        match await self._wire.receive():
            case ["pong", str(text)] if text.startswith(_MARK):
                return [Mark(int(text.removeprefix(_MARK)))]
            case ["pmessage", _, str(channel), str(key)]:
                return [Change(key, channel.partition(":")[2])]
            case _:
                return []

    async def still_tells(self) -> bool:
        return _tells_all(await _flags(self._side))

    async def close(self) -> None:
        await self._wire.close()
        await self._side.close()


class Monitored:
    """MONITOR on one connection; marks are ECHO commands on another, which MONITOR shows in their place."""

    name = "MONITOR"

    def __init__(self, wire: RedisWire, side: RedisWire, commands: dict[str, tuple[int, int, int]]) -> None:
        self._wire = wire
        self._side = side
        self._commands = commands
        self._database = database(wire.url)

    @classmethod
    async def open(cls, url: str, *, deadline: float) -> Self:
        async with _both(url, deadline) as (wire, side, keep):
            commands = dict(_writing(await side.ask("COMMAND")))
            await wire.ask("MONITOR")
            keep.pop_all()
            return cls(wire, side, commands)

    async def mark(self, number: int) -> None:
        await self._side.ask("ECHO", f"{_MARK}{number}")

    async def read(self) -> list[Change | Mark]:
        line = _MONITORED.match(str(await self._wire.receive()))
        if line is None:
            return []
        words = _words(line["words"])
        if len(words) == 2 and words[0].upper() == "ECHO" and words[1].startswith(_MARK):
            return [Mark(int(words[1].removeprefix(_MARK)))]
        return list(self._changes(words)) if int(line["database"]) == self._database else []

    async def still_tells(self) -> bool:
        return True

    async def close(self) -> None:
        await self._wire.close()
        await self._side.close()

    def _changes(self, words: list[str]) -> Iterator[Change]:
        name = words[0].lower() if words else ""
        full = f"{name}|{words[1].lower()}" if len(words) > 1 else name
        first, last, step = self._commands.get(full) or self._commands.get(name) or (0, 0, 0)
        end = last if last >= 0 else len(words) + last
        if first and step:
            kind = _SAME.get(name, full.replace("|", "-") if full in self._commands else name)
            yield from (Change(key, kind) for key in words[first : end + 1 : step])


@asynccontextmanager
async def _both(url: str, deadline: float) -> AsyncIterator[tuple[RedisWire, RedisWire, AsyncExitStack]]:
    """Gives two connections and what closes them after the block, unless they are taken out of it (`pop_all`)."""
    async with AsyncExitStack() as keep:
        wires = []
        for _ in range(2):
            wires.append(await RedisWire.open(url, deadline=deadline))
            keep.push_async_callback(wires[-1].close)
        yield wires[0], wires[1], keep


async def _switched_on(side: RedisWire, *, ours: bool) -> bool:
    try:
        flags = await _flags(side)
        if not _tells_all(flags) and ours:
            await side.ask("CONFIG", "SET", _SETTING, "".join(sorted({*flags, "A", "E"})))
            flags = await _flags(side)
    except ResponseError:  # CONFIG is forbidden or renamed
        return False
    return _tells_all(flags)


async def _flags(side: RedisWire) -> str:
    answer: Any = await side.ask("CONFIG", "GET", _SETTING)
    return str(answer[1]) if answer else ""


def _tells_all(flags: str) -> bool:
    return {"A", "E"} <= set(flags)


def _writing(table: Any) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yields the commands that write, and which of their words are keys: first, last, step."""
    for entry in table:
        name, _, flags, first, last, step = entry[:6]
        if "write" in flags:
            yield str(name).lower(), (int(first), int(last), int(step))
        if len(entry) > 9:
            yield from _writing(entry[9])


def _words(text: str) -> list[str]:
    """The words of a command, which MONITOR puts into quotes, with every byte that is not printable as an escape."""
    return [_unescaped(quoted) for quoted in _QUOTED.findall(text)]


def _unescaped(quoted: str) -> str:
    raw = quoted.encode("latin-1", "backslashreplace").decode("unicode_escape")
    return raw.encode("latin-1", "replace").decode(errors="replace")
