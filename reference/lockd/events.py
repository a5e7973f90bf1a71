"""Log events: one JSON object a line on standard error."""

import json
import logging
import sys
import traceback
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


class LogLines(logging.Handler):
    """Brings what libraries log into the same lines; of an error only its kind and place."""

    def __init__(self, events: Events) -> None:
        super().__init__(logging.WARNING)
        self._events = events

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and (error := record.exc_info[1]) is not None:
            places = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
            text = f"{text} {type(error).__name__} in {' > '.join(places)}"
        self._events.emit("log", level=record.levelname.lower(), message=text)
