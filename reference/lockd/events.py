"""Log events: one JSON object a line on standard error."""

import sys

from holdfast.reference.shared.jsonlog import JsonLog


class Events(JsonLog):
    def __init__(self, node_name: str) -> None:
        super().__init__(node_name, sys.stderr.buffer)
