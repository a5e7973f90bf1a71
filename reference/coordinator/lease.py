"""Leader election (section 1): the lock, its lease, and who may believe to be the leader.

A node leads from a successful acquisition on, and only as long as a whole lease has not passed since its last
successful renewal was asked for, by its own clock. So a leader that was frozen or cut off stops by itself before
anybody else can lead. Each action is fenced by the lock once more, in the script that performs it.
"""

from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any

from holdfast.reference.coordinator.store import AWAY

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

RETRY_SHARE = 0.05
"""After how much of the renewal interval a renewal that Redis did not answer is tried again."""


class Lease:
    def __init__(self, node: "Node") -> None:
        self.node = node
        self.clock = node.clock
        self.key = node.names.lock_key()
        self.value = ""
        self.deadline = -inf
        self.terms = 0

    def is_leader(self) -> bool:
        return self.clock.now() < self.deadline

    def may_act(self) -> bool:
        """Tells whether this node does leader work now."""
        return self.is_leader()

    def token(self) -> str:
        return self.node.ids.token(self.node.id)

    def facts(self) -> dict[str, Any]:
        """Returns what a script needs to compare the lock with."""
        return {"lock": self.key, "token": self.value}

    async def acquire(self) -> bool:
        """Takes the lock if it is free; value and expiry are one step."""
        asked, value = self.clock.now(), self.token()
        if not await self.set_lock(value, int(self.node.settings.lease * 1000)):
            return False
        self.value, self.deadline = value, asked + self.node.settings.lease
        return True

    async def set_lock(self, value: str, lease_ms: int) -> bool:
        return await self.node.store.call("SET", self.key, value, "NX", "PX", lease_ms) is not None

    async def renew(self) -> bool:
        """Sets the lease back to its full length; False if the lock is another's, or gone."""
        asked = self.clock.now()
        if not self.is_leader() or not await self.renew_once():
            return False
        self.deadline = asked + self.node.settings.lease
        return True

    async def renew_once(self) -> bool:
        facts = {**self.facts(), "leaseMs": int(self.node.settings.lease * 1000)}
        return bool((await self.node.store.run("renew_lock", facts))["renewed"])

    async def release(self) -> None:
        """Frees the lock if it is this node's, so that a successor need not wait."""
        self.deadline = -inf
        with suppress(*AWAY):
            await self.node.store.run("release_lock", self.facts())

    def on_lost(self) -> None:
        """Goes on as a follower: jobs and their events are not touched."""
        self.deadline = -inf
        self.node.events.emit("leader.lost")
        self.node.metrics.leader.set(0)

    def on_won(self) -> None:
        self.terms += 1
        self.node.events.emit("leader.won", term=self.terms)
        self.node.metrics.leader.set(1)


class Challenge:
    """Competes for the lock while another holds it, and renews it while this node does."""

    def __init__(self, node: "Node") -> None:
        self.node = node

    def poll_interval(self) -> float:
        return self.node.settings.elect_poll

    def renew_interval(self) -> float:
        return self.node.settings.renew_interval

    def may_challenge(self) -> bool:
        return not self.node.draining

    def on_membership_change(self, peers: Mapping[str, Any]) -> None:
        """Who else is there has nothing to do with who leads."""

    async def run(self) -> None:
        while True:
            try:
                won = self.may_challenge() and await self.node.lease.acquire()
            except AWAY:
                won = False
            if won:
                self.node.lease.on_won()
                await self.hold()
            await self.node.clock.sleep(self.poll_interval())

    async def hold(self) -> None:
        """Renews until the lock is lost."""
        pause = self.renew_interval()
        while True:
            await self.node.clock.sleep(pause)
            try:
                if not await self.node.lease.renew():
                    break
                pause = self.renew_interval()
            except AWAY:
                pause = self.renew_interval() * RETRY_SHARE
        self.node.lease.on_lost()
