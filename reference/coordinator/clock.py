"""Time, as a component that tests and mutants can replace."""

import asyncio
import time
from datetime import UTC, datetime


class Clock:
    def now(self) -> float:
        """Returns the moment in seconds. It goes on while the process is stopped, and no wall clock moves it."""
        return time.monotonic()

    def stamp(self) -> str:
        """Returns the time of day for messages; nothing is decided by it."""
        return datetime.now(UTC).isoformat(timespec="microseconds")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
