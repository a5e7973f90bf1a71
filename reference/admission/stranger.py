"""The admission node as a stranger: dialects on every connection, late answers, a slow first second.

An attempt may be answered late by a small part of its deadline. The position in the queue is to be had within 50 ms at
the 95th percentile, so its answer is late by much less. For its first second the node may be without its store, while
`/health` answers already: nothing ties the two together, and 503 with Retry-After is what the document has for it.
"""

from holdfast.reference.admission.components import Components
from holdfast.reference.admission.settings import Settings
from holdfast.reference.shared.stranger.voice import Stranger

LATE_SHARE = 0.03
LATE_POSITION = 0.01


def _other_status(method: str, path: str, status: int) -> int:
    """An attempt of the wrong form is still an attempt with an outcome: the contract has 400, 413 and 200 for it."""
    if method == "POST" and path.endswith("/connect"):
        return 200 if status in {400, 413} else status
    return 400 if status == 413 else status


def estrange(components: Components, settings: Settings, name: str) -> Stranger:
    """Makes the components those of a stranger with this name, `SEED:NODE`."""

    def late(path: str) -> float:
        return LATE_POSITION if path.endswith("/queue/status") else LATE_SHARE * settings.attempt_deadline

    stranger = Stranger(name, late, _other_status)
    components.speech = stranger
    if stranger.traits.slow_start:
        components.link = type("Link", (components.link,), {"waits_first": stranger.traits.slow_start})
    return stranger
