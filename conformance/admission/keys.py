"""The names of the target's keys in Redis, as the wire sheet has them; the descriptor may give other templates."""

from collections.abc import Mapping
from typing import ClassVar

from holdfast.conformance.shared import keys

TEMPLATES: Mapping[str, str] = {
    "session_char": "session:char:{}",
    "session_data": "session:data:{}",
    "session_instance": "session:instance:{}",
    "session_reconnect": "session:reconnect:{}",
    "session_heartbeat": "session:heartbeat:{}:{}",
    "session_drain": "session:drain:{}",
    "queue_pending": "queue:pending:{}",
    "queue_entry": "queue:entry:{}",
    "ratelimit_window": "ratelimit:window:{}",
    "ratelimit_lock": "ratelimit:lock:{}",
    "replacement": "replacement:{}",
    "character": "character:{}",
}


class Keys(keys.Keys):
    templates: ClassVar[Mapping[str, str]] = TEMPLATES
