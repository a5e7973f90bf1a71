"""Ctrl-C and its kin during a run.

A KeyboardInterrupt that Python raises from a signal handler may strike anywhere, and be lost. While checks run, a
signal is noted and handed to whoever waits for outcomes instead; before that nothing can be torn, so the exception is
raised at once. After the first signal all further ones are ignored: an impatient second Ctrl-C must not tear what the
first one has begun to tidy up.
"""

import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

_HEEDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Signals:
    """Takes the signals over from `take` to `give_back`; `name` says which one came, if any."""

    def __init__(self) -> None:
        self.name: str | None = None
        self._before: dict[signal.Signals, Any] = {}
        self._interrupt: Callable[[], None] | None = None

    def take(self) -> None:
        """Handle the signals from now on, except those that are ignored already (nohup, a background job)."""
        heeded = [number for number in _HEEDED if signal.getsignal(number) is not signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._on_signal) for number in heeded}

    def hand_to(self, interrupt: Callable[[], None] | None) -> None:
        """Call this when a signal comes, instead of raising; None raises again."""
        self._interrupt = interrupt

    def give_back(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.name = signal.Signals(number).name
        ignore_signals()
        if self._interrupt is None:
            raise KeyboardInterrupt
        self._interrupt()


def ignore_signals() -> None:
    for number in _HEEDED:
        signal.signal(number, signal.SIG_IGN)
