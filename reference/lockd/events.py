"""Log events: one JSON object a line on standard error."""

import json
import sys
from datetime import UTC, datetime
from typing import Any, TextIO


class Events:
    def __init__(self, node_name: str, stream: TextIO | None = None) -> None:
        self._node = node_name
        self._stream = stream or sys.stderr

    def emit(self, event: str, **fields: Any) -> None:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream.write(json.dumps({"event": event, "time": moment, "node": self._node, **fields}) + "\n")
        self._stream.flush()

    def log(self, level: str, message: str) -> None:
        """For the operator of this node."""
        self.emit("log", level=level, message=message)
