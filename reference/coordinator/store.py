"""The store: scripts with a time limit, and the few plain commands that several parts of a node need."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import hiredis

from holdfast.reference.coordinator.scripts import STORE
from holdfast.reference.shared.redislink import Call, RedisAway
from holdfast.reference.shared.scriptstore import Facts, ScriptStore

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

Record = Mapping[str, str]
AWAY = (RedisAway, TimeoutError, hiredis.ReplyError)
"""What a call raises when Redis does not do it: it is away, too slow, or refuses."""


class Store(ScriptStore):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.node = node

    async def run(self, name: str, facts: Facts, call: Call | None = None) -> Any:
        async with asyncio.timeout(self.node.settings.patience):
            return await super().run(name, facts, call)

    async def call(self, *words: str | bytes | float) -> Any:
        """Sends one command and returns its reply."""
        async with asyncio.timeout(self.node.settings.patience):
            return await self.node.link.call(*words)

    async def job(self, job_id: str) -> Record:
        """Returns the record of a job, empty if there is none."""
        return _record(await self.call("HGETALL", f"{STORE}job:{job_id}"))

    async def members(self, key: str) -> set[str]:
        return {_text(each) for each in await self.call("SMEMBERS", f"{STORE}{key}")}

    async def keep(self, key: str, fields: Mapping[str, str | float]) -> None:
        """Writes fields of a hash."""
        words = [word for pair in fields.items() for word in pair]
        await self.call("HSET", f"{STORE}{key}", *words)

    async def _evaluate(self, name: str, facts: str, call: Call) -> Any:
        """Returns the answer as text: what others wrote into it need not be text at all."""
        return (await super()._evaluate(name, facts, call)).decode(errors="replace")


def _record(words: list[bytes]) -> Record:
    return dict(zip(map(_text, words[::2]), map(_text, words[1::2]), strict=True))


def _text(value: bytes) -> str:
    return value.decode(errors="replace")
