"""Help for mutants that need more than one row: a store with other Lua, and another order of the checks."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.admission.store import Store

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


Lua = Mapping[str, str]
"""Bodies by the names of their functions."""


class Rescripted(Store):
    """Its Lua believes something that the node found out before the run."""

    lua: ClassVar[Lua] = {}

    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.scripts = Scripts(node.scripts.limits, {**node.scripts.overrides, **self.lua}).all

    def name(self, key: str, id_: str) -> str:
        return f"{self.node.settings.prefix}{key}:{id_}"

    def wall_ms(self) -> int:
        return int(self.node.events.wall_clock() * 1000)


def ahead(step: str, other: str) -> dict[str, tuple[str, ...]]:
    """The precedence with one check moved in front of another, wherever both are made."""
    return {
        kind: _moved(steps, step, other) if {step, other} <= set(steps) else steps
        for kind, steps in Rules.precedence.items()
    }


def _moved(steps: tuple[str, ...], step: str, other: str) -> tuple[str, ...]:
    rest = [each for each in steps if each != step]
    place = rest.index(other)
    return (*rest[:place], step, *rest[place:])
