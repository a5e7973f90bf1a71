"""Support for mutants that need more than a row: a store with other Lua bodies, and another order of the checks."""

from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.store import Store
from holdfast.reference.shared.rescripted import Lua, RescriptedStore

__all__ = ["Lua", "Rescripted", "ahead"]


class Rescripted(RescriptedStore, Store):
    """A store whose Lua believes what the node has read in an earlier call; mutants add the facts in `decide`."""

    def name(self, key: str, id_: str) -> str:
        return f"{self.node.settings.prefix}{key}:{id_}"

    def wall_ms(self) -> int:
        return int(self.node.events.wall_clock() * 1000)


def ahead(step: str, other: str) -> dict[str, tuple[str, ...]]:
    """Returns the precedence with one check moved in front of another, for every kind of attempt that has both."""
    return {
        kind: _moved(steps, step, other) if {step, other} <= set(steps) else steps
        for kind, steps in Rules.precedence.items()
    }


def _moved(steps: tuple[str, ...], step: str, other: str) -> tuple[str, ...]:
    rest = [each for each in steps if each != step]
    place = rest.index(other)
    return (*rest[:place], step, *rest[place:])
