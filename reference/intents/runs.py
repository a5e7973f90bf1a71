"""One session that this worker runs, from the moment it is taken to its end (3.2 steps 5 to 7)."""

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.reference.intents.store import Record

if TYPE_CHECKING:
    from holdfast.reference.intents.bus import Entry


@dataclass(frozen=True)
class Ending:
    """How a session ends."""

    state: str
    reason: str
    detail: str = ""


CLIENT_STOP = Ending("STOPPED", "R_CLIENT_STOP")
SHUTDOWN = Ending("STOPPED", "R_CANCELLED", "worker shutdown")
LEASE_LOST = Ending("FAILED", "R_LEASE_EXPIRED")
NOT_STARTED = Ending("FAILED", "R_PIPELINE_START_FAILED")
PROCESS_ENDED = Ending("FAILED", "R_PROCESS_ENDED")
STORE_AWAY = Ending("FAILED", "R_UNKNOWN", "store unavailable")
BUSY = Ending("FAILED", "R_LEASE_BUSY", "dedup lease held")
NO_TUNER = Ending("FAILED", "REJECTED_NO_TUNER", "no tuner slots available")


@dataclass
class Run:
    """`ending` is set once: the first cause counts."""

    session: Record
    entry: "Entry"
    slot: int | None = None
    leases: list[str] = field(default_factory=list)
    ending: "asyncio.Future[Ending]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    process: asyncio.subprocess.Process | None = None
    taken: bool = False

    @property
    def id(self) -> str:
        return self.session["sessionId"]

    @property
    def vod(self) -> bool:
        return self.session["mode"] == "RECORDING"

    def end(self, ending: Ending) -> None:
        if not self.ending.done():
            self.ending.set_result(ending)
