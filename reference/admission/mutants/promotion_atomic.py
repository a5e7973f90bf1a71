"""Violations of the row that wants one promotion per slot, with many promoters."""

from typing import TYPE_CHECKING, ClassVar

from holdfast.reference.admission.mutants.admit_burst import ReadThenWrite
from holdfast.reference.admission.mutants.rescripted import Lua
from holdfast.reference.admission.mutants.split import Split
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.shared.redislink import RedisAway, Subscription

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


@violates("AD-QUEUE-11", 1, "Reading and removing the head are separate commands and the removal result is ignored.")
class ReadThenRemove(Split):
    """A lock keeps the promoters of one node apart."""

    split = ("promote",)
    mutex = True
    # A head that may not enter is removed by the later writes only, so a second look would find it again.
    lua: ClassVar[Lua] = {
        "pick_next": """
local head = not limits.picked and redis.call('ZRANGE', queue_key(instanceId), 0, 0)[1]
limits.picked = true
return head"""
    }


@violates("AD-QUEUE-11", 2, "Every node promotes one entry on each release notice.")
class EveryNodePromotes(Promoter):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        unchecked = Scripts(node.scripts.limits, {"may_promote": "return serving(instanceId)"})
        node.store.scripts = {**node.store.scripts, "promote": unchecked.all["promote"]}
        self.channel = f"{node.settings.prefix}admission:release"
        self.notices = Subscription(node.settings.redis_url, self.channel, self.noticed)

    async def run(self) -> None:
        self.notices.start()
        await super().run()

    async def fill(self, instance_id: str) -> None:
        await self.node.link.call("PUBLISH", self.channel, instance_id)

    def noticed(self, payload: bytes) -> None:
        self.node.spawn(self.promote_next(payload.decode()))

    async def promote_next(self, instance_id: str) -> None:
        try:
            promoted = await self.promote_one(instance_id)
        except RedisAway:
            return
        if promoted["promoted"]:
            self.announce(instance_id, promoted)


violation(
    "AD-QUEUE-11",
    3,
    "A promoter empties the queue in a loop without re-reading the active count.",
    lua={"may_promote": "return serving(instanceId)"},
)


@violates("AD-QUEUE-11", 4, "The entry is popped in one command and the session written in another.")
class PopThenWrite(ReadThenWrite):
    """A lock keeps the promoters of one node apart."""

    split = ("promote",)
    mutex = True
