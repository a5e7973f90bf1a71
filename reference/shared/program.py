"""The main program of a reference node: settings, violations, one event loop, exit code.

Every node starts and ends in the same way, and this is the order:

1. `--violate ID/n` (as often as wanted) and the variable VIOLATE name mutants, `--stranger SEED:NODE` or
   the variable STRANGER makes the node speak in dialects drawn from that name; all other arguments are the spec's own.
2. Settings are read, then components made and the mutants put into them. The modules with mutants are imported only
   when one is asked for: a correct node never loads them. The same holds for the module that makes it a stranger.
3. The node is made inside its event loop, runs, and ends by a signal (`Background.stop_on_signals`), by the failure of
   a background task, or because it can't start.

A node that ended by a signal exits with 0, one that a task has failed with 1. What keeps it from starting is one
sentence on standard error and the program's own exit code, never a traceback.
"""

import asyncio
import gc
import importlib
import os
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from holdfast.reference.shared.background import with_library_logs
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.settings import BadSetting

S = TypeVar("S")
C = TypeVar("C")
R = TypeVar("R")
VIOLATE = "--violate"
STRANGER = "--stranger"


class Runs(Protocol):
    """What a node is to its main program."""

    failed: bool

    @property
    def events(self) -> JsonLog: ...

    async def run(self) -> None:
        """Serves until it is stopped."""


class Tells(Protocol):
    """What makes a node a stranger, to its main program."""

    def tell(self, events: JsonLog) -> None:
        """Logs what was drawn."""


@dataclass(frozen=True)
class Program(Generic[S, C]):
    """How the node of one spec is started.

    `mutants` is the package with the mutants' `table`, `stranger` the module with `estrange`. `refused` are errors
    whose text is already a sentence for people; `broken` are those that only say what happened, and `hint` says then
    what to look at.
    """

    settings: Callable[[Mapping[str, str], Sequence[str]], S]
    components: Callable[[], C]
    node: Callable[[S, C], Runs]
    mutants: str
    stranger: str = ""
    loop: Callable[[Coroutine[Any, Any, bool]], bool] = asyncio.run
    refused: tuple[type[Exception], ...] = (BadSetting,)
    broken: tuple[type[Exception], ...] = (OSError,)
    hint: str = "Is the port taken?"
    complains_with: str = ""
    gives_up_with: int = 2

    def main(self, argv: Sequence[str]) -> NoReturn:
        try:
            rest, names = violations(argv, os.environ)
            rest, named = taken(rest, STRANGER)
            name = named[-1] if named else os.environ.get("STRANGER")
            settings = self.settings(os.environ, rest)
            components = with_violations(self.components(), names, self.mutants)
            stranger = self._estranged(components, settings, name) if name is not None else None
            gc.freeze()  # spares full collections the imported modules; requests would wait for them
            failed = self.loop(self._serve(settings, components, stranger))
        except self.refused as error:
            self._give_up(str(error))
        except self.broken as error:
            self._give_up(f"The node could not start: {error}. {self.hint}")
        raise SystemExit(1 if failed else 0)

    def _estranged(self, components: C, settings: S, name: str) -> Tells:
        if not name or not self.stranger:
            raise BadSetting(f"{STRANGER} needs a seed and the name of the node, for example {STRANGER} 17:a.")
        stranger: Tells = importlib.import_module(self.stranger).estrange(components, settings, name)
        return stranger

    async def _serve(self, settings: S, components: C, stranger: Tells | None) -> bool:
        node = self.node(settings, components)
        if stranger is not None:
            stranger.tell(node.events)
        await with_library_logs(node.run(), node.events.log)
        return node.failed

    def _give_up(self, sentence: str) -> NoReturn:
        sys.stderr.write(f"{self.complains_with}{sentence}\n")
        raise SystemExit(self.gives_up_with)


def violations(argv: Sequence[str], environment: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Returns the arguments without `--violate`, and the names of the mutants that they and the environment give."""
    rest, named = taken(argv, VIOLATE)
    texts = [environment.get("VIOLATE", ""), *named]
    return rest, [name for text in texts for name in text.replace(",", " ").split()]


def taken(argv: Sequence[str], wanted: str) -> tuple[list[str], list[str]]:
    """Returns the arguments without this flag, and its values."""
    rest, values = [], []
    words = iter(argv)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag != wanted:
            rest.append(word)
        else:
            values.append(value if equals else next(words, ""))
    return rest, values


def with_violations(components: C, names: Iterable[str], mutants: str) -> C:
    """Puts the named mutants of this package into the components and returns them. Raises BadSetting for no mutant."""
    if names := list(names):
        table = importlib.import_module(f"{mutants}.table")
        for name in names:
            table.apply(name, components)
    return components
