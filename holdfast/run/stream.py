"""The event stream of a run: appended to a file as it goes, shown by every reporter, folded into every report.

Events come from two threads, the loop's and the main one. One lock keeps lines whole and in order, and each line is
flushed, so that a run that is killed has told everything up to that moment. Reporters draw in a thread of their own:
the time that a screen takes must not delay a check.
"""

import json
import queue
import threading
import time
from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TextIO

from holdfast.run.events import CheckFinished, Event, encode

EVENTS = "events.jsonl"


class Reporter(Protocol):
    def handle(self, event: Event) -> None: ...


class Stream:
    def __init__(self, folder: Path | None = None, reporters: Sequence[Reporter] = ()) -> None:
        """Without a folder nothing is written; reporters are shown everything all the same."""
        self.started = time.monotonic()
        self.reporters = list(reporters)
        self._lock = threading.Lock()
        self._to_show: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._shower: threading.Thread | None = None
        self._file: TextIO | None = None
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            self._file = (folder / EVENTS).open("w", encoding="utf-8", errors="backslashreplace")

    def emit(self, event: Event) -> None:
        """Write the event, and show it."""
        stamped = self._stamped(event)
        line = line_of(stamped)
        with self._lock:
            if self._file:
                self._file.write(line)
                self._file.flush()
            self._show(stamped)

    def show(self, event: Event) -> None:
        """Show the event without writing it: what a check waits for is progress, not a result."""
        with self._lock:
            self._show(self._stamped(event))

    def close(self) -> None:
        """Return when the reporters have shown everything."""
        with self._lock:
            if self._file:
                self._file.close()
                self._file = None
        if self._shower:
            self._to_show.put(None)
            self._shower.join()
            self._shower = None

    def _stamped(self, event: Event) -> Event:
        return replace(event, at=round(time.monotonic() - self.started, 4))

    def _show(self, event: Event) -> None:
        if not self.reporters:
            return
        if isinstance(event, CheckFinished) and event.verdict == "pass":
            event = replace(event, transcript=[], timings=[], steps=[])  # no screen shows those of a pass
        if self._shower is None:
            self._shower = threading.Thread(target=self._draw, name="reporters", daemon=True)
            self._shower.start()
        self._to_show.put(event)

    def _draw(self) -> None:
        while (event := self._to_show.get()) is not None:
            for reporter in self.reporters:
                reporter.handle(event)


def line_of(event: Event) -> str:
    """The event as one line of the stream."""
    return json.dumps(encode(event), ensure_ascii=False, default=_plain) + "\n"


def _plain(value: Any) -> Any:
    """A nested record as its fields; anything else that JSON does not know as text."""
    return vars(value) if is_dataclass(value) else str(value)
