"""What sessions hold and leave behind, as a check sees it: leases, pipelines, and the store as a whole."""

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from holdfast.check.finding import Inconclusive, NotObservable, demand, expect
from holdfast.check.hooks import Hooks
from holdfast.check.plain import plain
from holdfast.check.timeline import Moment
from holdfast.conformance.intents.caller import Caller, HasId
from holdfast.conformance.intents.keys import Lease


def _changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, str]:
    """Returns what has become of each key that is not as it was."""
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    return {key: f"{plain(before.get(key))} before, {plain(after.get(key))} now" for key in changed}


class Holdings(Caller):
    """Leases, pipelines and the footprint of one target."""

    # --- leases

    async def released(self, *keys: str, bound: str, since: Moment, what: str) -> None:
        """Waits until these leases are gone and judges that they were released: before they could have run out.

        Later than the bound is a warning, gone only by expiry a failure.
        """
        last: dict[str, Lease] = {}

        async def gone() -> bool:
            read = {key: await self.store.lease(key) for key in keys}
            last.update({key: lease for key, lease in read.items() if lease.there})
            return not any(lease.there for lease in read.values())

        _, seen = await self.comes(gone, bound, since=since, what=what, every=self.T.sample_fast)
        for key, lease in last.items():
            early = lease.left is None or seen.hi < lease.expiry.lo - self.T.lease_slack
            left = "without expiry" if lease.left is None else f"with {lease.left:.2f} s left"
            demand(early, f"{key} released", f"it was last seen {left}, and then ran out", what)

    # --- the bus

    async def redeliver(self, session: HasId, times: int = 1) -> None:
        """Appends copies of the session's start event to the bus, as deliveries that come again."""
        with self.context.arranging("IN-QUEUE-03"):
            bus = await self.store.events()
            named = [event for event in bus if any(session.id in text for text in event.fields.values())]
            demand(named, "an event that names the session", f"{len(bus)} events that do not", session.id)
        for _ in range(times):
            await self.store.publish(named[0])

    # --- the pipeline

    async def steer(
        self, target: str, *, start_delay: str = "", fail_start: bool = False, exit_after: str = ""
    ) -> None:
        """Says how the pipelines of a channel behave from now on, fake(R,{…}); delays are names of timings."""
        orders: dict[str, Any] = {}
        if start_delay:
            orders["start_delay_ms"] = round(getattr(self.T, start_delay) * 1000)
        if fail_start:
            orders["fail_start"] = True
        if exit_after:
            orders["exit_after_ms"] = round(getattr(self.T, exit_after) * 1000)
        hooks = await self._hooks()
        await hooks.stimulus("pipeline", target=target, orders=json.dumps(orders))

    async def runs(self, target: str) -> int:
        """Returns how often a pipeline of this channel or recording was asked to start."""
        hooks = await self._hooks()
        return int((await hooks.query("runs", target=target)).document or 0)

    async def _hooks(self) -> Hooks:
        return (await self.context.get(Hooks)).on(self.deployment)

    # --- what must not change

    async def leaves_no_trace(
        self, act: Callable[[], Awaitable[None]], why: str, *, watch: str = "quiet_watch"
    ) -> None:
        """Takes the catalogue's snapshot, acts, and judges that nothing has changed, also `watch` later.

        No session may run meanwhile, because a running one rewrites its own record.
        """
        before = await self._still()
        await act()
        expect(_changes(before, await self.store.footprint()), {}, why=f"changes of store and bus after {why}")
        await self.T.sleep(getattr(self.T, watch), f"anything to appear after {why}")
        expect(_changes(before, await self.store.footprint()), {}, why=f"the same {watch} later")

    async def _still(self) -> dict[str, Any]:
        """Waits until nothing changes any more, such as leases of sessions that have ended; returns the snapshot.

        Raises Inconclusive at give_up: then others are at work on the target.
        """
        before, began = await self.store.footprint(), self.T.now()
        while True:
            await self.T.sleep(self.T.sample_every, "the store to be still")
            after = await self.store.footprint()
            if after == before:
                return after
            if self.T.now().hi > began.hi + self.T.give_up:
                raise Inconclusive(f"the store was never still; the last changes: {plain(_changes(before, after))}")
            before = after

    def secret(self) -> str:
        """Returns the secret that the target was started with."""
        return self.credential("idem_secret")

    # --- what a target has to be set up for

    def behind_proxy(self) -> None:
        """Raises NotObservable unless the target counts X-Forwarded-For of requests that come from here."""
        if not self.context.target.dialect.get("trusted_proxy"):
            raise NotObservable("[dialect] trusted_proxy")
