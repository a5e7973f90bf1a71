"""The moving part of the terminal: one bar for the run, one line for each running check and what it waits for."""

from collections.abc import Callable
from dataclasses import dataclass, field

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.reports.text import seconds, visible

SHOWN = 8


@dataclass(slots=True)
class Running:
    title: str
    ids: list[str]
    started: float
    planned_s: float | None = None
    waiting_for: str = ""
    until_s: float | None = None


@dataclass(slots=True)
class Progress:
    """What the screen shows. Rich asks for it from its own thread, the run changes it from the loop."""

    clock: Callable[[], float]
    total: int = 0
    done: int = 0
    red: int = 0
    planned_wall_s: float | None = None
    running: dict[tuple[str, int], Running] = field(default_factory=dict)

    def __rich__(self) -> RenderableType:
        now = self.clock()
        running = sorted(list(self.running.values()), key=lambda check: check.started)  # noqa: C414 - a copy taken at once; the dict changes under us
        lines = [_line(check, now) for check in running[:SHOWN]]
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
        return Group(self._bar(now), table, *rest)

    def _bar(self, now: float) -> RenderableType:
        grid = Table.grid(padding=(0, 2), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_column(no_wrap=True, justify="right")
        red = f", {self.red} not green" if self.red else ""
        planned = f" of about {seconds(self.planned_wall_s)}" if self.planned_wall_s else ""
        grid.add_row(
            Text(f"{self.done}/{self.total} checks{red}", style="bold"),
            ProgressBar(total=max(self.total, 1), completed=self.done, complete_style="cyan"),
            Text(f"{seconds(max(now, 0.0))}{planned}"),
        )
        return grid


def _line(check: Running, now: float) -> tuple[Text, ...]:
    elapsed = seconds(max(now - check.started, 0.0))
    planned = f" / {seconds(check.planned_s)}" if check.planned_s else ""
    left = f"{seconds(check.until_s - now)} left" if check.until_s is not None and check.until_s > now else ""
    return (
        Text("  " + (check.ids[0] if check.ids else "–")),
        Text(visible(check.title)),
        Text(visible(check.waiting_for), style="dim"),
        Text(left, style="dim"),
        Text(elapsed + planned),
    )
