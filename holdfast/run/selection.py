"""What a run is narrowed to by name (`--only`) and by level: rows, groups, parts of rows, single checks.

A name may be written in any case, with `*`, `?` and `[…]` for what is left open, several in one word with commas:

    XX-RATE-03      a requirement            XX-RATE-03#2    one part of it
    XX-RATE         a group of them          XX-*-0[12]      whatever fits
    test_a_token_is_used_up, or "a token is used up"         a check, by its function or its title

Names of requirements go first. Of a row that is chosen by a part or by a check, the other checks are left out, and the
row says so: it is `partial` at best.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase

from holdfast.check.verifies import CheckSpec
from holdfast.spec.catalogue import LEVELS, Catalogue, Part, Requirement

# Not inside brackets: the id of a parametrized check may have commas there.
_COMMA = re.compile(r",(?![^\[]*\])")


class PlanError(ValueError):
    """The suite does not match the catalogue, or nothing is left to run."""


def split_names(only: Iterable[str]) -> tuple[str, ...]:
    """The single names of what the user gave."""
    return tuple(name.strip() for words in only for name in _COMMA.split(words) if name.strip())


@dataclass(frozen=True)
class Selection:
    """What the user asked for; nothing means all."""

    only: tuple[str, ...] = ()
    level: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return split_names(self.only)

    def check(self, catalogue: Catalogue, checks: Collection[str] = ()) -> None:
        """Refuse a name that nothing has: leaving it out in silence would read as tested."""
        if self.only and not self.names:
            raise PlanError("--only: names nothing; write a requirement, a group or a check")
        for name in self.names:
            if not known(name, catalogue, checks):
                raise PlanError(unknown(name, [catalogue], checks))

    def among(self, checks: Mapping[str, CheckSpec]) -> "Choice":
        """What the names mean in a suite with these checks."""
        return Choice(self, checks)


class Choice:
    """Which rows, and which checks of them, a selection means."""

    def __init__(self, selection: Selection, checks: Mapping[str, CheckSpec]) -> None:
        self._level = selection.level
        self._names = selection.names
        self._checks = frozenset(id_ for id_ in checks if any(_names_check(name, id_) for name in self._names))
        self._claimed = {claim.id for id_ in self._checks for claim in checks[id_].claims}

    def takes(self, row: Requirement) -> bool:
        if self._level and LEVELS.index(row.level) > LEVELS.index(self._level.upper()):
            return False
        return not self._names or row.id in self._claimed or any(_names_row(name, row) for name in self._names)

    def takes_walk(self, id_: str) -> bool:
        """Whether a walk takes part: it looks at half of the catalogue, so among named rows only if it is named too."""
        return not self._names or id_ in self._checks

    def left_out(self, row: Requirement, part: Part, checks: Iterable[str]) -> list[str]:
        """The checks of this part that were not asked for."""
        mine = [name for name in self._names if _names_row(name, row)]
        if not self._names or any(_part_of(name) in (None, part.number) for name in mine):
            return []
        return [check for check in checks if check not in self._checks]


def known(name: str, catalogue: Catalogue, checks: Iterable[str] = ()) -> bool:
    """Whether a catalogue has a requirement, a part or a group of this name, or a suite such a check."""
    part = _part_of(name)
    rows = [row for row in catalogue if _names_row(name, row)]
    if any(part is None or 1 <= part <= len(row.parts) for row in rows):
        return True
    return not rows and any(_names_check(name, check) for check in checks)


def unknown(name: str, catalogues: Iterable[Catalogue], checks: Iterable[str] = ()) -> str:
    """The sentence about a name that nothing has, with the nearest that there is."""
    found = list(catalogues)
    rows = [row for catalogue in found for row in catalogue]
    if parts := [len(row.parts) for row in rows if _names_row(name, row)]:
        return f"{name}: no such part; {name.partition('#')[0]} has {max(parts)}, see holdfast explain"
    specs = ", ".join(catalogue.key for catalogue in found)
    said = f"{name}: no requirement, group or check of {specs}"
    near = get_close_matches(name.upper(), [*{_group(row) for row in rows}, *(row.id for row in rows)], n=1)
    near = near or get_close_matches(_plain(name), [_plain(check) for check in checks], n=1)
    return f"{said}; did you mean {near[0]!r}?" if near else f"{said}; see holdfast requirements"


def names_row(name: str, id_: str) -> bool:
    """Whether a name without a part means the row of this id: itself, its group, or a pattern of either."""
    pattern = name.upper()
    return fnmatchcase(id_, pattern) or fnmatchcase(id_, f"{pattern}-*")


def _names_row(name: str, row: Requirement) -> bool:
    return names_row(name.partition("#")[0], row.id)


def _part_of(name: str) -> int | None:
    """The part that a name asks for; 0, which no row has, for what is no number."""
    _, hash_, number = name.partition("#")
    return None if not hash_ else int(number) if number.isdecimal() else 0


def _group(row: Requirement) -> str:
    return row.id.rpartition("-")[0]


def _names_check(name: str, id_: str) -> bool:
    """Whether a name means the check of this id: the id itself, its function, with its parameters or without."""
    wanted, whole = _plain(name).replace("[", "[[]"), _plain(id_)
    return any(fnmatchcase(each, wanted) for each in (id_.lower(), whole, whole.partition("[")[0]))


def _plain(name: str) -> str:
    """The function of a check, or its title, in the same letters."""
    function = name.rpartition("::")[2] if "*" not in name else name
    return function.strip().lower().replace(" ", "_").removeprefix("test_")
