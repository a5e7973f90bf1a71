"""Time, as one thing that tests can replace."""

import time


class Clock:
    """Leases that a node holds itself run on the monotonic clock; the wall clock only goes on the wire and to disk."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
