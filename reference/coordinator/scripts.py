"""The Lua scripts of a node, assembled from named functions as `reference/shared/scripts.py` says.

Folders of `lua/`: `lock` is the leader lock, `jobs` the record of a job, `ownership` the map from node to jobs with its
epochs, `events` a job's two channels, `leader` what only the holder of the lock may do. A store effect and the
acknowledgement of its message are one step, and so are a leader's action and the look at the lock.
"""

from pathlib import Path
from typing import Any, ClassVar

from holdfast.reference.shared import scripts

STORE = "orchestrix:store:"
OWNER_GROUP = "owner"
"""The one consumer group of each job's channels; its consumers are the owners that the job has had."""


class Scripts(scripts.Scripts):
    folder: ClassVar[Path] = Path(__file__).parent / "lua"
    mains: ClassVar[tuple[str, ...]] = (
        "renew_lock",
        "release_lock",
        "claim",
        "mark",
        "release",
        "resume",
        "find_orphans",
        "read_events",
        "apply_statuses",
        "apply_logs",
        "due_jobs",
        "dispatch",
        "due_schedules",
        "fire_schedule",
        "time_out",
        "wished_cancels",
        "cancel",
        "republish",
    )


def limits() -> dict[str, Any]:
    """Returns what the scripts know from the start."""
    return {"store": STORE, "group": OWNER_GROUP}
