"""For mutants: a store with other Lua bodies, which may believe what the node has read in an earlier call.

A spec joins it with its own store (`class Rescripted(RescriptedStore, Store)`). A mutant gives the bodies in `lua` and
adds the facts where it calls the script. The script stays atomic, but what it believes may have changed since.
"""

from collections.abc import Mapping
from typing import ClassVar

from holdfast.reference.shared.scriptstore import Scripted, ScriptStore

Lua = Mapping[str, str]
"""Names of functions with their bodies."""


class RescriptedStore(ScriptStore):
    lua: ClassVar[Lua] = {}

    def __init__(self, node: Scripted) -> None:
        super().__init__(node)
        self.scripts = type(node.scripts)(node.scripts.limits, {**node.scripts.overrides, **self.lua}).all
