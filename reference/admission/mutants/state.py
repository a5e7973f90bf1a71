"""Violations of the rows about data placement."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from holdfast.reference.admission.attempts import Attempt, Attempts, fresh_id
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.recovery import Recovery
from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.verdicts import Record, Status, Verdict
from holdfast.reference.shared.redislink import Call, RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

# Records come to Redis with the call of a script and go back with its answer.
BRING = "for i = 2, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end\n"
TAKE_BACK = """
local kept = {cjson.encode(answer)}
for _, name in ipairs(redis.call('KEYS', limits.prefix .. 'session:*')) do
  if not string.find(name, 'session:drain', 1, true) then
    kept[#kept + 1], kept[#kept + 2] = name, redis.call('DUMP', name)
    redis.call('DEL', name)
  end
end
return kept
"""


class Visiting(Scripts):
    def tail(self, main: str) -> str:
        return BRING + super().tail(main).replace("return cjson.encode(answer)", TAKE_BACK)


@violates("AD-STATE-01", 1, "Sessions are kept in a dictionary of the server process; Redis has no session record.")
class InProcess(Store):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.scripts = Visiting(node.scripts.limits, node.scripts.overrides).all
        self.sessions: dict[bytes, bytes] = {}
        self._turn = asyncio.Lock()

    async def _evaluate(self, name: str, facts: str, call: Call) -> bytes:
        async with self._turn:
            words = [word for record in self.sessions.items() for word in record]
            answer, *words = await call("EVAL", self.scripts[name].text, 0, facts, *words)
            self.sessions = dict(zip(words[::2], words[1::2], strict=True))
        return cast("bytes", answer)


@violates("AD-STATE-01", 2, "Each node keeps its own queue, so status on node B is 404.")
class OwnQueue(Store):
    mine: frozenset[str] = frozenset()

    async def decide(self, facts: Record) -> Verdict:
        self.mine |= {facts["characterId"]}
        return await super().decide(facts)

    async def status(self, user_id: str, character_id: str, instance_id: str) -> Status:
        if character_id not in self.mine:
            return {"state": "absent"}
        return await super().status(user_id, character_id, instance_id)


@violates("AD-STATE-02", 1, "Server deletes its key prefix at start-up.")
class CleanSlate(Recovery):
    async def on_connect(self, call: Call) -> None:
        if self.node.link.connections == 0:
            for name in await call("KEYS", f"{self.node.settings.prefix}*"):
                await call("DEL", name)
        await super().on_connect(call)


@violates("AD-STATE-02", 2, "The rate lock lives in process memory and is gone after a restart.")
class LockOfThisProcess(Scripts):
    """Only this process knows the name of the lock, so the lock is lost when the process ends."""

    def __init__(self, limits: Mapping[str, Any], overrides: Mapping[str, str]) -> None:
        lock_key = f"return key('ratelimit:lock', facts.userId .. ':{fresh_id()}')"
        super().__init__(limits, {**overrides, "lock_key": lock_key})


@violates(
    "AD-STATE-03",
    1,
    "Each enqueue also inserts a database row within the request and fails with INTERNAL_ERROR when the database is "
    "away.",
)
class RowPerEnqueue(Attempts):
    async def ask(self, attempt: Attempt, facts: Record) -> Verdict:
        verdict = await super().ask(attempt, facts)
        if verdict["outcome"] == "queued" and self.node.settings.database_url:
            await self.insert(facts["characterId"])
        return verdict

    async def insert(self, character_id: str) -> None:
        database = urlsplit(self.node.settings.database_url)
        try:
            _, writer = await asyncio.open_connection(database.hostname, database.port)
        except OSError as error:
            raise RedisAway("The database is away.") from error
        writer.write(character_id.encode())
        writer.close()


@violates("AD-STATE-03", 2, "The handler awaits the audit write before it answers.")
class AuditFirst(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        verdict = await super().settle(attempt)
        if self.node.events.audit is not None:
            await self.node.events.audit.queue.join()
        return verdict


violation(
    "AD-STATE-04",
    1,
    "One global queue key for all instances.",
    lua={"queue_key": "return limits.prefix .. 'queue:pending'"},
)

violation(
    "AD-STATE-04",
    2,
    "The active count is one global number compared with the instance's capacity.",
    lua={
        "active_count": """
local count = 0
for _, each in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
  count = count + redis.call('SCARD', slots_key(each))
end
return count"""
    },
)
