"""For mutants: a store whose scripts are not atomic. One call reads and decides, later calls write.

The reading call runs the same functions, but the Lua function `write`, through which a spec's scripts make all their
changes, only lists each command, and the tail returns the list with the answer. The node then sends the commands one by
one. Other nodes run between the two calls and decide on a state that is about to change, which is what an atomicity
mutant has to show. A function that reads back what the same run has written finds nothing; a mutant for which that
matters replaces it in `lua`.

A spec joins it with its own store (`class Split(SplitStore, Store)`). A mutant names the scripts, and widens the gap
where a race needs it:

    @violates("AD-ADMIT-03", 1, "…")
    class ReadThenWrite(Split):
        split = ("decide",)
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.reference.shared.redislink import Call
from holdfast.reference.shared.scripts import Scripts
from holdfast.reference.shared.scriptstore import Facts, Scripted, ScriptStore

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
    """Scripts that return their answer with the list of their writes. A spec joins it with its own scripts."""

    def tail(self, main: str) -> str:
        return super().tail(main).replace("cjson.encode(answer)", "cjson.encode({answer, limits.writes})")


class SplitStore(ScriptStore):
    recording: ClassVar[type[Recording]]
    """The spec's own scripts, joined with `Recording`."""
    split: ClassVar[tuple[str, ...]] = ()
    gap: ClassVar[float] = 0.0
    """Seconds between reading and writing."""
    between: ClassVar[float] = 0.0
    """Seconds between one write and the next."""
    record: ClassVar[str] = RECORD
    """The body of `write` in the reading call. A subclass may let some writes through and list the others only."""
    lua: ClassVar[Mapping[str, str]] = {}
    """Other bodies of functions in the reading call."""
    mutex: ClassVar[bool] = False
    """Whether a lock of this process guards the two calls, as if there were one node only."""

    def __init__(self, node: Scripted) -> None:
        super().__init__(node)
        limits = {**node.scripts.limits, "writes": []}
        recording = self.recording(limits, {**node.scripts.overrides, **self.lua, "write": self.record})
        self.scripts = {**self.scripts, **{name: recording.all[name] for name in self.split}}
        self._lock = asyncio.Lock()

    async def run(self, name: str, facts: Facts, call: Call | None = None) -> Any:
        if name not in self.split:
            return await super().run(name, facts, call)
        if not self.mutex:
            return await self._read_then_write(name, facts, call or self._node.link.call)
        async with self._lock:
            return await self._read_then_write(name, facts, call or self._node.link.call)

    async def _read_then_write(self, name: str, facts: Facts, call: Call) -> Any:
        answer, writes = json.loads(await self._evaluate(name, json.dumps(facts), call))
        await self.pause(facts)
        await self.write(writes, call)
        return answer

    async def pause(self, facts: Facts) -> None:  # noqa: ARG002  # for subclasses
        """Runs between reading and writing; a subclass may act here as another node would."""
        await asyncio.sleep(self.gap)

    async def write(self, writes: list[list[str]], call: Call) -> None:
        for words in writes:
            await call(*words)
            await asyncio.sleep(self.between)
