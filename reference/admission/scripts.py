"""The Lua scripts of a node (spec 1, 11), assembled from named functions as `reference/shared/scripts.py` says.

Everything that nodes share is in Redis and is read and changed by scripts only. What a verdict depends on is read in
the run that writes, so two nodes never give away the same slot. Functions read what they decide on before they write;
only the loop of `promote` reads again after a removal. Names of keys are made inside the script, because they depend on
what it has read; this needs a single Redis, not a cluster.

Folders of `lua/` are named after the spec's sections (`rate_limiting` is section 3, `queue` section 10, `replacement`
the confirm flow of section 7, `redis_outage` the first risk, `drain_mode` the glossary's word). `data_placement` names
every key and has the session records (section 1). `shared` has what all use: the clock, the prefix of keys, reading and
writing, and the journal from which `undo` takes an attempt back. `administration` has the calls of operators, for which
the spec has no section. `limits` has settings, precedence and the prefix of the keys.
"""

from pathlib import Path
from typing import ClassVar

from holdfast.reference.shared import scripts

FOLDER = Path(__file__).parent / "lua"

MAINS = (
    "decide",
    "undo",
    "attach",
    "beat",
    "drop",
    "leave",
    "status",
    "unqueue",
    "cancel",
    "promotable",
    "promote",
    "reap",
    "restore",
    "gauges",
    "register_instance",
    "register_character",
    "switch_drain",
    "drain_modes",
)


class Scripts(scripts.Scripts):
    folder: ClassVar[Path] = FOLDER
    mains: ClassVar[tuple[str, ...]] = MAINS
