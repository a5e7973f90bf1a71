"""A deployment that walks use one after the other, and what each of them finds there.

A walk leaves sessions and records behind, which the next does not look at: it has channels and recordings of its own,
and begins with all tuner slots free. What a walk has changed is put back: workers, the flag, secrets, and leases of
somebody else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.check.finding import Finding, Inconclusive
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.client import Intents
from holdfast.conformance.intents.walks.commands import Sight
from holdfast.conformance.intents.walks.looks import FOREIGN
from holdfast.conformance.intents.walks.state import (
    CHANNELS,
    DOWN,
    FIRST,
    PROFILES,
    RECORDINGS,
    SLOTS,
    STANDBY,
    UP,
    State,
)

# Secrets of APIs by the model's names; the first is what the target was started with.
_SECRET = "holdfast-walk-secret-{}"  # noqa: S105 - made up, for APIs that are started with it


@dataclass
class Stage:
    """`phase` is that of the deployment's APIs as it was started."""

    intents: Intents
    sight: Sight
    phase: int
    # What is there before the walk: names of keys, and the last entry of the bus.
    before: frozenset[str] = frozenset()
    last: str = ""
    walks: int = 0
    changed: bool = False
    workers: dict[str, str] = field(default_factory=lambda: {FIRST: UP, STANDBY: DOWN})

    @classmethod
    async def build(cls, intents: Intents, sight: Sight, phase: int) -> "Stage":
        """Gives the workers their slots, and starts the APIs and the first worker."""
        await intents.slots(SLOTS)
        if not intents.context.spec.started:
            await intents.deployment.start_nodes(*intents.apis, intents.worker)
        return cls(intents, sight, phase)

    def node(self, name: str) -> str:
        """Returns the node that the model calls so: an API by its number, or a worker."""
        if name in (FIRST, STANDBY):
            return self.intents.workers[name == STANDBY]
        return self.intents.apis[int(name[1:]) - 1]

    def secret(self, name: str) -> str:
        """Returns a secret by the model's name; empty if the suite does not know it."""
        first = self.intents.context.target.credentials.get("idem_secret")
        if name == "s0":
            return self.intents.credential("idem_secret") if first else ""
        return _SECRET.format(name)

    def names(self) -> Mapping[str, str]:
        """Returns fresh channels and recordings, and the target's profiles, by the model's names."""
        intents = self.intents
        channels = {name: intents.channel() for name in CHANNELS}
        recordings = {name: intents.recording() for name in RECORDINGS} if self.sight.recordings else {}
        return {**channels, **recordings, **dict(zip(PROFILES, intents.profiles, strict=False))}

    async def begin(self) -> State:
        """Notes what is there, and returns the state in which the walk begins."""
        self.walks += 1
        if self.sight.store:
            self.before = frozenset(await self.key_names())
            events = await self.intents.store.events(after=self.last)
            self.last = events[-1].id if events else self.last
        return State(phase=self.phase)

    async def key_names(self) -> set[str]:
        """Returns the names of all records, mappings and leases."""
        store, found = self.intents.store, set[str]()
        for root in store.roots("session", "idem", "lease"):
            found.update([str(key) async for key in store.redis.scan_iter(match=f"{root}*", count=1000)])
        return found

    async def clear(self, sessions: list[str]) -> None:
        """Puts back what the walk has changed, and waits until nothing of it is held any more."""
        intents = self.intents
        if self.sight.store:
            await self.take_back()
        if self.workers[STANDBY] != DOWN:
            await intents.kill(self.node(STANDBY))
        if self.workers[FIRST] != UP:
            await intents.restart(self.node(FIRST))
        if self.changed:
            await self._as_before()
        self.workers, self.changed = {FIRST: UP, STANDBY: DOWN}, False
        await self._end(sessions)

    async def _end(self, sessions: list[str]) -> None:
        """Stops these sessions and waits until they hold nothing."""
        T = self.intents.T
        for session in sessions:
            await self.intents.stop(session)
        try:
            for session in sessions:
                await T.until(partial(self._over, session), give_up=T.give_up, what="the sessions of the walk to end")
            if self.sight.store:
                await T.until(self._nothing_held, give_up=T.give_up, what="the leases of the walk to be gone")
        except Finding as never:
            raise Inconclusive("sessions of the last walk did not end, so no other can begin") from never

    async def _over(self, session: str) -> bool:
        return (await self.intents.poll(session)).state in (*wire.TERMINAL, "")

    async def _nothing_held(self) -> bool:
        return not set(await self.intents.store.leases()) - self.before

    async def take_back(self) -> None:
        """Deletes the leases of somebody else."""
        store = self.intents.store
        for key, owner in (await store.leases()).items():
            if owner == FOREIGN:
                await store.ask("DEL", key)

    async def _as_before(self) -> None:
        known = self.intents.context.target.settings
        flag = {"api_leases": "true" if self.phase == 1 else "false"} if "api_leases" in known else {}
        await self.restart_apis(("s0", ""), flag)

    async def restart_apis(self, secrets: tuple[str, str], more: Mapping[str, str] | None = None) -> None:
        """Starts all APIs again with these secrets, and settings."""
        self.changed = True
        known = self.intents.context.target.settings
        settings, unset = dict(more or {}), list[str]()
        if "idem_secret" in known and self.secret(secrets[0]):
            settings["idem_secret"] = self.secret(secrets[0])
        if "idem_secret_previous" in known:
            if secrets[1]:
                settings["idem_secret_previous"] = self.secret(secrets[1])
            else:
                unset = ["idem_secret_previous"]
        for api in self.intents.apis:
            await self.intents.restart(api, unset=unset, **settings)
