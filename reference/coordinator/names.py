"""The nine channels of section 2 and the lock, in the spelling that the settings choose.

`seed` is the spelling of the document, `upstream` that of the public project. A table of one's own replaces any of the
names of `seed`.
"""

import json
import string
from collections.abc import Mapping

SEED = {
    "dispatch": "orchestrix.job.dispatch.{queue}",
    "cancel": "orchestrix.job.cancel",
    "assigned": "orchestrix.job.assigned",
    "status": "orchestrix.job.{jobId}.status",
    "logs": "orchestrix.job.{jobId}.logs",
    "handoff": "orchestrix.job.handoff",
    "handoff_ack": "orchestrix.job.handoff.ack.{nodeId}",
    "worker_heartbeat": "orchestrix.worker.heartbeat",
    "coordinator_heartbeat": "orchestrix.coordinator.heartbeat",
    "lock": "orchestrix:coordinator:leader",
}
UPSTREAM = {
    "dispatch": "orchestrix:job:dispatch:{queue}",
    "cancel": "orchestrix:job:cancel",
    "assigned": "orchestrix:job:dispatched",
    "status": "orchestrix:job:{executionId}:status",
    "logs": "orchestrix:job:{executionId}:log",
    "handoff": "orchestrix:job:handoff",
    "handoff_ack": "orchestrix:job:handoff:ack:{nodeId}",
    "worker_heartbeat": "orchestrix:worker:metrics",
    "coordinator_heartbeat": "orchestrix:coordinator:metrics",
    "lock": "orchestrix:lock:orchestrix:coordinator:leader",
}
PROFILES = {"seed": SEED, "upstream": UPSTREAM}
PARAMETERS = {"dispatch": {"queue"}, "status": {"jobId", "executionId"}, "logs": {"jobId", "executionId"}}
PARAMETERS["handoff_ack"] = {"nodeId"}


def profile(text: str) -> str:
    """Returns the text if it is the name of a profile, or a JSON object with names of one's own."""
    if text in PROFILES:
        return text
    try:
        own = json.loads(text)
        wrong = [kind for kind, name in own.items() if not _fits(kind, name)]
    except (ValueError, AttributeError, TypeError):
        wrong = [text]
    if wrong:
        raise ValueError(f"must be {', '.join(PROFILES)} or a JSON object of names; {wrong[0]!r} is not understood")
    return text


def _fits(kind: str, name: str) -> bool:
    used = {field for _, field, _, _ in string.Formatter().parse(name) if field is not None}
    allowed = PARAMETERS.get(kind, set())
    return kind in SEED and used <= allowed and bool(used) == bool(allowed)


class Names:
    def __init__(self, text: str) -> None:
        self._names: Mapping[str, str] = PROFILES.get(text) or {**SEED, **json.loads(text)}

    def channel(self, kind: str, **ids: str) -> str:
        return self._names[kind].format(**ids)

    def lock_key(self) -> str:
        return self._names["lock"]
