"""Time, as a component that tests and mutants can replace."""

import time


class Clock:
    """Leader leases run on the monotonic clock; the wall clock is for times that other processes read."""

    def monotonic(self) -> float:
        return time.monotonic()

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000
