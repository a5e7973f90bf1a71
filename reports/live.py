"""The moving part of the terminal: one bar for the run, one line for each running check and what it waits for."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.reports.text import count, seconds, visible

SHOWN = 8


class Key(NamedTuple):
    """One check at work; a check runs against several mutants and in several repeats at a time."""

    check: str
    repeat: int
    variant: str


@dataclass(slots=True)
class Running:
    title: str
    ids: list[str]
    started: float
    planned_s: float | None = None
    waiting_for: str = ""
    until_s: float | None = None


class Standing(NamedTuple):
    """A wait of the whole run, and when it is over."""

    waiting_for: str
    until: float | None


@dataclass(slots=True)
class Progress:
    """What the screen shows. Rich asks for it from its own thread, the run changes it from the loop.

    A run of mutants has no number of checks to reach, because a mutant that is caught is spared the others. It counts
    the mutants that at least one check has tried (`done`) and those that were caught; `red` are the false alarms.
    Where several specs share the screen, `name` is the spec, and `shown` how many of its checks have a line.
    """

    clock: Callable[[], float]
    total: int = 0
    done: int = 0
    red: int = 0
    caught: int | None = None
    planned_wall_s: float | None = None
    running: dict[Key, Running] = field(default_factory=dict)
    standing: Standing | None = None
    name: str = ""
    shown: int = SHOWN

    def __rich__(self) -> RenderableType:
        now = self.clock()
        running = sorted(list(self.running.values()), key=lambda check: check.started)  # noqa: C414 - a copy taken at once; the dict changes under us
        lines = [_line(check, now) for check in running[: self.shown]]
        table = Table.grid(padding=(0, 2), expand=True)
        table.add_column(no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=3)
        table.add_column(no_wrap=True, overflow="ellipsis", ratio=2)
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True, justify="right")
        for line in lines:
            table.add_row(*line)
        hidden = len(running) - len(lines)
        rest = [Text(f"  and {hidden} more", style="dim")] if hidden else []
        return Group(self._bar(now), *_standing(self.standing, now), table, *rest)

    def _bar(self, now: float) -> RenderableType:
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_column(no_wrap=True, justify="right")
        planned = f" of about {seconds(self.planned_wall_s)}" if self.planned_wall_s else ""
        grid.add_row(
            Text(f"{self.name}  {self._counts()}".lstrip(), style="bold"),
            ProgressBar(total=max(self.total, 1), completed=self.done, complete_style="cyan"),
            Text(f"{seconds(max(now, 0.0))}{planned}"),
        )
        return grid

    def _counts(self) -> str:
        if self.caught is None:
            red = f", {self.red} not green" if self.red else ""
            return f"{self.done}/{self.total} checks{red}"
        red = f", {count(self.red, 'false alarm')}" if self.red else ""
        return f"{self.done}/{self.total} mutants tried, {self.caught} caught{red}"


def _line(check: Running, now: float) -> tuple[Text, ...]:
    elapsed = seconds(max(now - check.started, 0.0))
    planned = f" / {seconds(check.planned_s)}" if check.planned_s else ""
    left = _left(check.until_s, now)
    return (
        Text("  " + (check.ids[0] if check.ids else "–")),
        Text(visible(check.title)),
        Text(visible(check.waiting_for), style="dim"),
        Text(left, style="dim"),
        Text(elapsed + planned),
    )


def _standing(wait: Standing | None, now: float) -> list[Text]:
    """The line of a wait of the whole run; none while checks run."""
    if wait is None:
        return []
    line = Text(f"  {_left(wait.until, now) or 'waiting'}: {visible(wait.waiting_for)}", style="dim")
    line.no_wrap, line.overflow = True, "ellipsis"
    return [line]


def _left(until: float | None, now: float) -> str:
    return f"{seconds(until - now)} left" if until is not None and until > now else ""
