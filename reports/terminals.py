"""The terminal for several specs at the same time: one moving screen, lines of all specs as they come, one summary."""

import time
from collections.abc import Callable, Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from holdfast.reports.live import SHOWN, Progress
from holdfast.reports.summary import summary_lines
from holdfast.reports.terminal import Terminal
from holdfast.reports.text import Json
from holdfast.reports.together import lines
from holdfast.run.events import Event, RunFinished


class _Beside(Terminal):
    """The terminal of one of several specs: its lines among those of the others, its summary with theirs at the end."""

    def __init__(self, key: str, console: Console, screen: Live | None, shown: int, clock: Callable[[], float]) -> None:
        super().__init__(console, live=False, clock=clock)
        self.key = key
        self._live = screen
        self.progress = self._progress
        self.progress.name, self.progress.shown = key, shown
        self.begun = self.ended = False

    def close(self) -> None:
        """The screen belongs to all of them, and is closed by whoever opened it."""

    def _run_finished(self) -> None:
        self.ended = True

    def _headed(self, text: str) -> str:
        return f"{self.key} {text}"


class Terminals:
    """Shows events of several specs; `summary` prints what all of them came to. Used by one thread at a time."""

    def __init__(
        self,
        keys: Sequence[str],
        console: Console | None = None,
        *,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        real = self._console.file.isatty() and not self._console.is_dumb_terminal
        self.live = real if live is None else live
        screen = Live(self, console=self._console, refresh_per_second=4, transient=True) if self.live else None
        self._screen = screen
        shown = max(2, SHOWN // max(1, len(keys)))
        self._of = {key: _Beside(key, self._console, screen, shown, clock) for key in keys}

    def handle(self, key: str, event: Event) -> None:
        one = self._of[key]
        one.begun = True
        one.handle(event)
        if isinstance(event, RunFinished) and all(each.ended for each in self._of.values()):
            self.close()

    def close(self) -> None:
        """Ends the live screen. May be called at any time."""
        if self._screen:
            self._screen.stop()

    def summary(self, document: Json) -> None:
        width = next(iter(self._of.values())).width
        for key, results in document["specs"].items():
            self._of[key].show_lines(["", f"— {key} —", *summary_lines(results, width)])
        next(iter(self._of.values())).show_lines(["", *lines(document, width)])

    def __rich__(self) -> RenderableType:
        return Group(*(self._part(one) for one in self._of.values() if not one.ended))

    @staticmethod
    def _part(one: _Beside) -> Progress | Text:
        return one.progress if one.begun else Text(f"{one.key}  waits for a runner", style="dim")
