"""Warnings of libraries, written in the same form as a node's own events."""

import logging
import traceback
from collections.abc import Callable


class LogLines(logging.Handler):
    """Hands warnings and errors to `tell`. Of an exception it gives type and place only: its text may hold a secret."""

    def __init__(self, tell: Callable[[str, str], None]) -> None:
        super().__init__(logging.WARNING)
        self._tell = tell

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and (error := record.exc_info[1]) is not None:
            places = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-4:]]
            text = f"{text} {type(error).__name__} in {' > '.join(places)}"
        self._tell(record.levelname.lower(), text)
