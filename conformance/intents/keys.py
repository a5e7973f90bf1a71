"""The target's Redis by the names of the catalogue: leases, records, mappings and the bus.

Reading here changes nothing. What a check writes, such as a lease of a stranger, goes through `ask`, which notes it.
"""

import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from holdfast.check.timeline import Moment
from holdfast.conformance.shared.keys import Keys

_MILLISECOND = 0.001
# Seconds for which one blocking read of the bus waits, well below the time after which the connection gives up.
_BLOCK = 1.0


@dataclass(frozen=True)
class Lease:
    """A lease as it was read: its owner ("" for none), what it had left in seconds (None: no expiry), and when."""

    owner: str
    left: float | None
    moment: Moment

    @property
    def there(self) -> bool:
        return bool(self.owner)

    @property
    def expiry(self) -> Moment:
        """When it will have run out, as its life time announced it."""
        left = self.left or 0.0
        return Moment(self.moment.lo + left, self.moment.hi + left)

    def describe(self) -> str:
        if not self.there:
            return "no lease"
        return f"a lease of {self.owner}, " + ("without expiry" if self.left is None else f"{self.left:.3f} s left")


@dataclass(frozen=True)
class Event:
    """One entry of the bus."""

    id: str
    kind: str
    data: Mapping[str, Any]
    fields: Mapping[str, str]

    @property
    def session_id(self) -> str:
        return str(self.data.get("sessionId", ""))

    def describe(self) -> str:
        return f"{self.kind} {json.dumps(dict(self.data), ensure_ascii=False)}"


class IntentKeys(Keys):
    """Leases, records, mappings and the bus of one deployment."""

    templates: ClassVar[Mapping[str, str]] = {
        "service": "lease:service:{}",
        "tuner": "lease:tuner:{}",
        "lease": "lease:{}",
        "session": "session:{}",
        "idem": "idem:{}",
        "bus": "bus:session",
        "runs": "fake:runs",
    }

    def service(self, ref: str) -> str:
        return self.name("service", ref)

    def tuner(self, slot: object) -> str:
        return self.name("tuner", str(slot))

    def mapping(self, key: str) -> str:
        return self.name("idem", key)

    async def lease(self, key: str) -> Lease:
        """Reads a lease and its life time in one step."""
        asked = time.monotonic()
        owner, left = await self.together(("GET", key), ("PTTL", key))
        return Lease(str(owner or ""), left * _MILLISECOND if left >= 0 else None, Moment(asked, time.monotonic()))

    async def leases(self, kind: str = "lease") -> dict[str, str]:
        """Returns the leases of this kind (`service`, `tuner`; both if none is named) with their owners."""
        return {key: str(value) for key, value in (await self.snapshot_of(kind)).items() if value != "none"}

    async def tuners_of(self, session_id: str) -> list[str]:
        """Returns the tuner leases of this session, by name."""
        return sorted(key for key, owner in (await self.leases("tuner")).items() if owner == session_id)

    async def mappings(self) -> dict[str, str]:
        """Returns the session that each key maps to, by the whole name of the key in Redis."""
        return {key: str(value) for key, value in (await self.snapshot_of("idem")).items()}

    async def sessions(self) -> set[str]:
        """Returns the names of all records."""
        return set(await self.snapshot_of("session"))

    async def session(self, session_id: str) -> dict[str, Any]:
        """Returns the record of a session; {} if there is none."""
        return await self.record(self.name("session", session_id))

    async def events(self, after: str = "") -> list[Event]:
        """Returns all entries of the bus, or those after this one."""
        entries: Any = await self.redis.xrange(self.name("bus"), min=f"({after}" if after else "-")
        return [event_of(*entry) for entry in entries]

    async def publish(self, event: Event) -> None:
        """Appends a copy of an entry to the bus, as a second delivery of it."""
        words = [word for pair in event.fields.items() for word in pair]
        await self.ask("XADD", self.name("bus"), "*", *words)

    async def arrivals(self, since: str = "$") -> AsyncIterator[Event]:
        """Yields new entries of the bus as they come, read without a group; without `since` only later ones."""
        bus, last = self.name("bus"), since
        if last == "$":
            newest: Any = await self.redis.xrevrange(bus, count=1)
            last = newest[0][0] if newest else "0-0"
        while True:
            read: Any = await self.redis.xread({bus: last}, block=int(_BLOCK / _MILLISECOND))
            for _, entries in read or ():
                for id_, fields in entries:
                    last = id_
                    yield event_of(id_, fields)

    async def snapshot_of(self, *kinds: str) -> dict[str, Any]:
        """Returns all keys of these kinds with their values; the names are those of `templates`."""
        roots = [root.removeprefix(self._prefix) for root in self.roots(*kinds)]
        return await self.snapshot(*(f"{root}*" for root in roots))

    async def footprint(self) -> dict[str, Any]:
        """Returns the catalogue's snapshot: records, mappings, leases by value, pipeline runs, and the bus's end."""
        found = await self.snapshot_of("session", "idem", "lease")
        bus = self.name("bus")
        newest: Any = await self.redis.xrevrange(bus, count=1) if await self.redis.type(bus) == "stream" else []
        length = await self.redis.xlen(bus) if newest else 0
        found["runs of pipelines"] = await self.value(self.name("runs"))
        found["bus"] = {"length": length, "last": newest[0][0] if newest else ""}
        return found


def event_of(id_: str, fields: Mapping[str, str]) -> Event:
    """Returns an entry of the bus as an event, whether its data can be read or not."""
    try:
        data = json.loads(fields.get("data", "{}"))
    except ValueError:
        data = {}
    data = data if isinstance(data, dict) else {}
    return Event(id_, str(fields.get("type") or data.get("type", "")), data, fields)
