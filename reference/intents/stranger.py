"""API and worker as strangers: dialects on every connection, answers a little late, a slow first second.

No answer of the document has a time; the public implementation's callers wait half a second for one, and an answer is
late by much less. For its first second a process may be without its store: an API is not ready then and answers 503,
a worker consumes nothing. The number in a problem document is that of the answer, so no other status is drawn.
"""

from holdfast.reference.intents.components import Components
from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared.stranger.voice import Stranger

LATE_SECONDS = 0.05


def estrange(components: Components, settings: Settings, name: str) -> Stranger:  # noqa: ARG001  # as of every spec
    """Makes the components those of a stranger with this name, `SEED:NODE`."""
    stranger = Stranger(name, lambda _path: LATE_SECONDS, _same_status)
    components.speech = stranger
    if stranger.traits.slow_start:
        components.link = type("Link", (components.link,), {"waits_first": stranger.traits.slow_start})
    return stranger


def _same_status(_method: str, _path: str, status: int) -> int:
    return status
