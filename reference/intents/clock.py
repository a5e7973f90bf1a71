"""Time, as a component that tests and mutants can replace."""

import asyncio
import time


class Clock:
    def now(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
