"""The event stream of a run: appended to a file as it goes, handed to every reporter, folded into every report."""

import json
import queue
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TextIO

from holdfast.deployment import Reporter


class Stream:
    """Events may come from the scheduler's thread and from pytest's; one lock keeps lines whole and in order.

    Reporters draw in a thread of their own: what a screen takes to draw must not delay a check.
    """

    def __init__(self, path: Path | None, reporters: Sequence[Reporter] = ()) -> None:
        self.started = time.monotonic()
        self.reporters = list(reporters)
        self._lock = threading.Lock()
        self._to_show: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._shower: threading.Thread | None = None
        self._file: TextIO | None = None
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("w", encoding="utf-8", errors="backslashreplace")

    def emit(self, event: str, **fields: Any) -> None:
        record = {"event": event, "at": round(time.monotonic() - self.started, 4), **fields}
        line = json.dumps(record, ensure_ascii=False, default=str) + "\n"
        with self._lock:
            if self._file:
                self._file.write(line)
                self._file.flush()
            self._show(record)

    def show(self, event: str, **fields: Any) -> None:
        """For the terminal only: what a check waits for is progress, not a result."""
        with self._lock:
            self._show({"event": event, "at": round(time.monotonic() - self.started, 4), **fields})

    def close(self) -> None:
        """Returns when the reporters have shown everything."""
        with self._lock:
            if self._file:
                self._file.close()
                self._file = None
        if self._shower:
            self._to_show.put(None)
            self._shower.join()
            self._shower = None

    def _show(self, record: dict[str, Any]) -> None:
        if not self.reporters:
            return
        if record.get("verdict") == "pass":
            record = {**record, "transcript": [], "timings": [], "steps": []}
        if self._shower is None:
            self._shower = threading.Thread(target=self._draw, name="reporters", daemon=True)
            self._shower.start()
        self._to_show.put(record)

    def _draw(self) -> None:
        while (record := self._to_show.get()) is not None:
            for reporter in self.reporters:
                reporter.handle(record)
