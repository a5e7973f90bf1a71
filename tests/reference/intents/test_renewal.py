"""When a session renews, and when it gives its leases up as lost, on a clock that jumps."""

import asyncio
from collections.abc import Iterable

from holdfast.reference.intents.bus import Entry
from holdfast.reference.intents.clock import Clock
from holdfast.reference.intents.components import Components
from holdfast.reference.intents.runs import LEASE_LOST, Run
from holdfast.reference.intents.settings import Settings
from holdfast.reference.intents.store import Store
from holdfast.reference.intents.worker import Worker
from holdfast.reference.shared.redislink import RedisAway


class Jumping(Clock):
    """A clock on which every sleep is over at once."""

    moment = 0.0

    def now(self) -> float:
        return self.moment

    async def sleep(self, seconds: float) -> None:
        self.moment += seconds
        await asyncio.sleep(0)


class Answers(Store):
    """Renews as told, one word a call: `ok`, `away` or `lost`; the last word holds on."""

    script = ["ok"]  # noqa: RUF012  # each test sets its own

    async def renew(self, session_id: str, owner: str, leases: Iterable[str]) -> list[str] | None:  # noqa: ARG002  # all alike
        word = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if word == "away":
            raise RedisAway("for the test")
        return list(leases) if word == "lost" else []


async def renewed_until(script: list[str]) -> float:
    """Returns the moment at which a session that renews by this script is lost."""
    worker = Worker(Settings(), Components(clock=Jumping, store=type("Told", (Answers,), {"script": script})))
    session = {"sessionId": "s", "mode": "LIVE", "serviceRef": "r", "recordingId": ""}
    run = Run(session, Entry("0-0", "session.start", "s"), leases=["lease:service:r", "lease:tuner:0"])
    await worker.runner.renewals(run)
    assert run.ending.result() == LEASE_LOST
    return worker.clock.now()


async def test_a_lost_lease_is_noticed_at_the_next_renewal() -> None:
    assert await renewed_until(["ok", "ok", "lost"]) == 30.0


async def test_an_outage_is_tried_again_soon_and_forgotten_once_it_is_over() -> None:
    assert await renewed_until(["away", "away", "ok", "lost"]) == 10.0 + 0.5 + 0.5 + 10.0


async def test_what_is_not_confirmed_for_a_whole_ttl_is_lost() -> None:
    assert await renewed_until(["ok", "away"]) == 10.0 + 30.0
