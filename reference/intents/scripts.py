"""The Lua scripts of API and worker, assembled from named functions as `reference/shared/scripts.py` says.

Folders of `lua/`: `intents` is section 3.1 with the look-up of 3.3, `leases` and `sessions` are section 3.2 and the
flush of 5.3, `bus` keeps the stream short, `shared` has the clock and the one way to write. What a verdict depends on
is read in the run that writes, so that replicas of the API never make two sessions of one key, and workers never hold
one lease twice.
"""

from pathlib import Path
from typing import Any, ClassVar

from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared import scripts

BUS = "bus:session"
GROUP = "orchestrator"
RUNNING = "sessions:running"
"""A set: the sessions that a worker has taken and nobody has ended. It spares the sweep a scan over all records."""


class Scripts(scripts.Scripts):
    folder: ClassVar[Path] = Path(__file__).parent / "lua"
    mains: ClassVar[tuple[str, ...]] = (
        "accept",
        "request_stop",
        "read_session",
        "move_session",
        "end_session",
        "renew_session",
        "look_at",
        "expire_sessions",
        "acquire_lease",
        "release_lease",
        "flush_leases",
        "trim_bus",
    )


def limits(settings: Settings) -> dict[str, Any]:
    """Returns what the scripts know from the start."""
    return {
        "bus": BUS,
        "group": GROUP,
        "running": RUNNING,
        "busLength": settings.bus_length,
        "leaseTtlMs": settings.lease_ttl * 1000,
        "idemTtlMs": settings.idem_ttl * 1000,
        "sessionTtlMs": settings.session_ttl * 1000,
    }
