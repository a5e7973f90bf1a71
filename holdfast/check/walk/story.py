"""A walk as a story: numbered steps, what was legal at each, and what came."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Told:
    """One step, or a look at something after it, as the story tells it."""

    number: int
    text: str
    legal: tuple[str, ...] = ()
    seen: str = ""
    broken: bool = False
    took: tuple[float, float] = (0.0, 0.0)
    # What a target beside this one did.
    beside: str = ""


# Legal alternatives that a line of a story shows; the rest are counted.
_SHOWN = 4


def lines(story: Sequence[Told]) -> list[str]:
    """Returns the story as lines for people; the legal answers stand where they matter, at the step that broke."""
    return [line for told in story for line in _lines(told)]


def _lines(told: Told) -> list[str]:
    head = f"{told.number:3}. {told.text}" if not _is_look(told) else f"     then {told.text}"
    if not told.broken:
        return [f"{head}{f' → {told.seen}' if told.seen else ''}"]
    beside = [f"       beside {told.beside}"] if told.beside else []
    return [head, *(f"       legal  {text}" for text in _some(told.legal)), f"       seen   {told.seen}", *beside]


def _is_look(told: Told) -> bool:
    return told.broken and told.took == (0.0, 0.0)


def _some(legal: Sequence[str]) -> list[str]:
    left = len(legal) - _SHOWN
    return [*legal[:_SHOWN], *([f"or one of {left} more"] if left > 0 else [])]
