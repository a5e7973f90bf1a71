"""A store whose scripts are no longer atomic: one call reads and decides, later calls write.

Subclass it, name the scripts, and widen the gap where a race needs it:

    @violates("AD-ADMIT-03", 1, "…")
    class ReadThenWrite(Split):
        split = ("decide",)
"""

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.reference.admission.redislink import Call
from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

RECORD = """
local words = {...}
for i, word in ipairs(words) do
  if type(word) == 'number' then
    words[i] = string.format('%.17g', word)
  end
end
limits.writes[#limits.writes + 1] = words
return 0
"""


class Recording(Scripts):
    """Scripts that list what they would write instead of writing it."""

    def tail(self, main: str) -> str:
        return super().tail(main).replace("cjson.encode(answer)", "cjson.encode({answer, limits.writes})")


class Split(Store):
    split: ClassVar[tuple[str, ...]] = ("decide",)
    gap: ClassVar[float] = 0.0
    """Seconds between reading and writing."""
    between: ClassVar[float] = 0.0
    """Seconds between one write and the next."""
    record: ClassVar[str] = RECORD
    """What a write of the reading call does instead."""
    lua: ClassVar[Mapping[str, str]] = {}
    """Other bodies for functions of the reading call."""
    mutex: ClassVar[bool] = False
    """Whether a lock of this process guards the two calls, as if there were one node only."""

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        limits = {**node.scripts.limits, "writes": []}
        recording = Recording(limits, {**node.scripts.overrides, **self.lua, "write": self.record})
        self.scripts = {**self.scripts, **{name: recording.all[name] for name in self.split}}
        self._lock = asyncio.Lock()

    async def run(self, name: str, facts: Record, call: Call | None = None) -> Any:
        if name not in self.split:
            return await super().run(name, facts, call)
        if not self.mutex:
            return await self._read_then_write(name, facts, call or self.node.link.call)
        async with self._lock:
            return await self._read_then_write(name, facts, call or self.node.link.call)

    async def _read_then_write(self, name: str, facts: Record, call: Call) -> Any:
        answer, writes = json.loads(await self._evaluate(name, json.dumps(facts), call))
        await self.pause(facts)
        await self.write(writes, call)
        return answer

    async def pause(self, facts: Record) -> None:  # noqa: ARG002  # for subclasses
        """What happens between reading and writing."""
        await asyncio.sleep(self.gap)

    async def write(self, writes: list[list[str]], call: Call) -> None:
        for words in writes:
            await call(*words)
            await asyncio.sleep(self.between)
