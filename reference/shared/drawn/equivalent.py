"""Mutants that no client can tell from the original: `<key>/equivalent.toml`, each with the argument.

    [[equivalent]]
    function = "attempts.Attempts.timed_out"
    change = '''
    -             await asyncio.sleep(left + COARSE)
    +             await asyncio.sleep(left - COARSE)
    '''
    argument = "…"

`change` is the changed lines of the mutant's diff, with lines around them where those alone would fit several mutants.
Indentation does not matter. An entry that fits no mutant, or more than one, is refused: an argument must not outlive
the code that it speaks of, nor excuse what nobody looked at.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.reference.shared.drawn.draw import Draw, DrawnMutant
from holdfast.reference.shared.drawn.edit import changed, hunk
from holdfast.reference.shared.drawn.scope import ScopeError

_KEYS = {"function", "change", "argument"}


@dataclass(frozen=True)
class Equivalent:
    function: str
    change: tuple[str, ...]
    argument: str

    def fits(self, mutant: DrawnMutant) -> bool:
        """Whether this speaks of the mutant: its lines stand in the diff in this order, all changed ones among them."""
        if mutant.function.name != self.function:
            return False
        lines = hunk(mutant.diff)
        if changed(lines) != changed(self.change):
            return False
        length = len(self.change)
        return any(lines[place : place + length] == self.change for place in range(len(lines) - length + 1))


class Equivalents:
    def __init__(self, file: Path, draw: Draw) -> None:
        self.file = file
        self.entries = [self._checked(entry, draw) for entry in self._entries()]

    def argument_for(self, mutant: DrawnMutant) -> str | None:
        return next((entry.argument for entry in self.entries if entry.fits(mutant)), None)

    def _entries(self) -> list[Mapping[str, str]]:
        if not self.file.is_file():
            return []
        try:
            read = tomllib.loads(self.file.read_text("utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise ScopeError(f"{self.file}: {error}") from None
        if unknown := set(read) - {"equivalent"}:
            raise ScopeError(f"{self.file}: unknown key {min(unknown)!r}; entries are [[equivalent]].")
        return list(read.get("equivalent", ()))

    def _checked(self, entry: Mapping[str, str], draw: Draw) -> Equivalent:
        if set(entry) != _KEYS or not all(str(value).strip() for value in entry.values()):
            raise ScopeError(f"{self.file}: an entry has exactly {', '.join(sorted(_KEYS))}, and none of them empty.")
        name = entry["function"]
        function = draw.scope.find(name)
        if function is None:
            raise ScopeError(f"{self.file}: no mutant is drawn from a function {name}; mend the name or remove it.")
        found = Equivalent(name, hunk(entry["change"].strip("\n")), " ".join(entry["argument"].split()))
        fitting = {mutant.after for mutant in draw.of_function(function) if found.fits(mutant)}
        if len(fitting) != 1:
            problem = "no mutant" if not fitting else f"{len(fitting)} mutants"
            raise ScopeError(
                f"{self.file}: the change given for {name} fits {problem}; copy the lines of the mutant's diff, "
                "with some around them if they occur twice, or remove the entry."
            )
        return found
