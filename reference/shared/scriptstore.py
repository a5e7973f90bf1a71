"""Runs a node's scripts over its Redis link: facts in, answer out, and the Redis clock kept current.

A spec's store adds the typed calls. Each script is known to Redis by its SHA; `prepare` loads them on every new
connection, and a Redis that was flushed meanwhile gets the text again with the call itself.
"""

import asyncio
import json
from time import monotonic
from typing import Any, Protocol, cast

import hiredis

from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.redislink import Call, RedisAway, RedisClock, RedisLink
from holdfast.reference.shared.scripts import Scripts

Facts = dict[str, Any]
_dumps = json.JSONEncoder(separators=(",", ":")).encode


class Scripted(Protocol):
    """The parts of a node that its store needs."""

    @property
    def scripts(self) -> Scripts: ...

    @property
    def link(self) -> RedisLink: ...

    @property
    def events(self) -> JsonLog: ...


class ScriptStore:
    def __init__(self, node: Scripted) -> None:
        self._node = node
        self.scripts = node.scripts.all
        self.clock = RedisClock()

    async def prepare(self, call: Call) -> None:
        """Loads the scripts and compares the clocks; called on each new connection."""
        await asyncio.gather(*(call("SCRIPT", "LOAD", script.text) for script in self.scripts.values()))
        sent = monotonic()
        seconds, microseconds = await call("TIME")
        self.clock.observe(sent, monotonic(), int(seconds) * 1000 + int(microseconds) / 1000)

    async def run(self, name: str, facts: Facts, call: Call | None = None) -> Any:
        """Runs one script with the facts and returns its answer."""
        call = call or self._node.link.call
        sent = monotonic()
        answer = json.loads(await self._evaluate(name, _dumps(facts), call))
        received = monotonic()
        self.clock.observe(sent, received, answer["at"])
        self.took(received - sent)
        return answer

    def took(self, seconds: float) -> None:
        """Called after each run with the time that it took; a spec may draw its conclusions from a long one."""

    async def _evaluate(self, name: str, facts: str, call: Call) -> bytes:
        """Returns the raw answer. A Redis that was restarted or flushed lacks the script and gets its text again."""
        script = self.scripts[name]
        try:
            try:
                return cast("bytes", await call("EVALSHA", script.sha, 0, facts))
            except hiredis.ReplyError as error:
                if not str(error).startswith("NOSCRIPT"):
                    raise
                return cast("bytes", await call("EVAL", script.text, 0, facts))
        except hiredis.ReplyError as error:
            self._node.events.log("error", f"Redis refused script {name}: {error}")
            raise RedisAway(f"Redis refused script {name}.") from error
