"""The terminal: a consumer of the event stream while it is written.

On a terminal a live screen shows the running checks; elsewhere every finished check is a plain line. Both print
findings as they come and end with the same summary. Nothing from a target reaches Rich as markup.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from holdfast.reports.finding import WIDTH, render_finding
from holdfast.reports.live import Progress, Running
from holdfast.reports.model import Fold, sentence_of
from holdfast.reports.summary import check_line, plan_line, summary_lines
from holdfast.reports.text import Json, clean
from holdfast.verdict import Verdict

STYLES: dict[str, str] = {
    Verdict.ERROR: "bold magenta",
    Verdict.FAIL: "bold red",
    Verdict.FIXED: "bold cyan",
    Verdict.WARN: "yellow",
    Verdict.KNOWN: "blue",
    Verdict.INCONCLUSIVE: "magenta",
    Verdict.PARTIAL: "green",
    Verdict.NOT_OBSERVABLE: "dim",
    Verdict.NOT_APPLICABLE: "dim",
    Verdict.PASS: "green",
}

_QUIET = frozenset({Verdict.PASS, Verdict.PARTIAL, Verdict.NOT_OBSERVABLE, Verdict.NOT_APPLICABLE})


class Terminal:
    def __init__(
        self,
        console: Console | None = None,
        *,
        live: bool | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._console = console or Console(highlight=False, markup=False, emoji=False)
        self._fold = Fold()
        self._clock = clock
        self._zero = clock()
        self._rows: dict[str, Json] = {}
        self._ids: dict[str, list[str]] = {}
        self._found: set[str] = set()
        self._progress = Progress(clock=self._now)
        # FORCE_COLOR makes Rich call a pipe a terminal; colours are welcome there, a moving screen is not.
        real = self._console.file.isatty() and not self._console.is_dumb_terminal
        wanted = real if live is None else live
        self._live = (
            Live(self._progress, console=self._console, refresh_per_second=4, transient=True) if wanted else None
        )

    def handle(self, event: Mapping[str, Any]) -> None:
        """Shows one event. Besides the stream's it takes `check.waiting`, which only lives here."""
        if event.get("variant"):
            return
        said: Json = clean(dict(event))
        self._fold.add(event)
        match said.get("event"):
            case "run.started":
                self._run_started(said)
            case "plan":
                self._plan(said)
            case "check.started":
                self._check_started(said)
            case "check.waiting":
                self._check_waiting(said)
            case "check.finished":
                self._check_finished(said)
            case "run.finished":
                self._run_finished()

    def close(self) -> None:
        """Gives the screen back. Safe at any time: a run that breaks off must not leave a hidden cursor."""
        if self._live:
            self._live.stop()

    @property
    def _width(self) -> int:
        return min(self._console.width, WIDTH) if self._console.is_terminal else WIDTH

    def _now(self) -> float:
        return self._clock() - self._zero

    def _run_started(self, said: Json) -> None:
        self._zero = self._clock() - float(said.get("at", 0.0))
        target = said.get("target", {})
        self._print(
            f"holdfast {said.get('holdfast', '')}  {', '.join(said.get('specs', []))}  "
            f"target {target.get('name', '')} {target.get('version', '')}".rstrip()
            + f"  profile {said.get('profile', '')}  time scale {said.get('time_scale', 1)}  seed {said.get('seed')}"
        )

    def _plan(self, said: Json) -> None:
        for row in said.get("rows", []):
            self._rows[row["id"]] = row
            for part in row.get("parts", []):
                for check in part.get("checks", []):
                    self._ids.setdefault(check, []).append(row["id"])
        document = self._fold.results().to_json()
        self._print(plan_line(document))
        self._progress.total = document["plan"]["reconciliation"]["checks_planned"] * document["repeat"]
        self._progress.planned_wall_s = document["planned"]["wall_s"]
        if self._live:
            self._live.start()

    def _check_started(self, said: Json) -> None:
        check = said["check"]
        self._progress.running[_key(said)] = Running(
            title=said.get("title") or sentence_of(check),
            ids=list(dict.fromkeys(self._ids.get(check, []))),
            started=said.get("at", self._now()),
            planned_s=said.get("planned_s"),
        )

    def _check_waiting(self, said: Json) -> None:
        left = said.get("until_s")
        for (check, repeat), running in self._progress.running.items():
            if check == said["check"] and repeat == said.get("repeat", repeat):
                running.waiting_for = said.get("waiting_for", "")
                running.until_s = None if left is None else said.get("at", self._now()) + left
                return

    def _check_finished(self, said: Json) -> None:
        self._progress.running.pop(_key(said), None)
        final = said.get("final", True)
        loud = said["verdict"] not in _QUIET
        self._progress.done += final
        self._progress.red += final and loud
        if loud or not self._live:
            self._print(check_line(said, self._width), said["verdict"])
        if final and loud and said["check"] not in self._found:
            # With --repeat the same finding would come again and again; the counts are in the report.
            self._found.add(said["check"])
            self._print(self._finding(said), said["verdict"])

    def _finding(self, said: Json) -> str:
        ids = dict.fromkeys(item["id"] for item in said.get("verifies", []))
        rows = [self._rows[requirement] for requirement in ids if requirement in self._rows]
        return f"\n{render_finding(rows, said, self._width)}\n"

    def _run_finished(self) -> None:
        self.close()
        lines = summary_lines(self._fold.results().to_json(), self._width)
        self._print("")
        for line in lines[:-1]:
            self._print(line, line.partition(" ")[0])
        self._print(lines[-1])

    def _print(self, text: str, verdict: str = "") -> None:
        """One block; the verdict, where the text shows it as a word of its own, in its colour."""
        shown = Text(_encodable(text, self._console.encoding))
        if style := STYLES.get(verdict):
            shown.highlight_regex(rf"(?m)(^ *{verdict}(?= )|(?<=  ){verdict}(?: \(absent\))?$)", style)
        self._console.print(shown, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _key(said: Json) -> tuple[str, int]:
    return said["check"], said.get("repeat", 1)


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)
