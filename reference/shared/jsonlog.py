"""A node's own log: one JSON object a line, with `event`, `time` and `node` first."""

import json
import time
from datetime import UTC, datetime
from typing import Any, BinaryIO


class JsonLog:
    """Writes events to a stream, each as soon as it happens. A spec's own log may add to a record or copy its line."""

    def __init__(self, node_name: str, stream: BinaryIO) -> None:
        self._node_name = node_name
        self._stream = stream

    def wall_clock(self) -> float:
        """Returns the time of this node's own clock, in seconds, for logs and dates only."""
        return time.time()

    def emit(self, event: str, **fields: Any) -> None:
        """Writes one event."""
        moment = datetime.fromtimestamp(self.wall_clock(), UTC).isoformat(timespec="milliseconds")
        self.write(json.dumps({"event": event, "time": moment, "node": self._node_name, **fields}).encode() + b"\n")

    def log(self, level: str, message: str) -> None:
        """Writes a line for the operator of this node; it is no event of the spec."""
        self.emit("log", level=level, message=message)

    def write(self, line: bytes) -> None:
        """Writes one whole line."""
        self._stream.write(line)
        self._stream.flush()
