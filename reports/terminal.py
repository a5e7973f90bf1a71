"""The terminal: a consumer of the event stream while it is written.

On a terminal a live screen shows the running checks; elsewhere every finished check is a plain line. Both print
findings as they come and end with the same summary. Nothing from a target reaches Rich as markup.
"""

import time
from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.live import Live
from rich.text import Text

from holdfast.reports.finding import WIDTH, render_finding
from holdfast.reports.live import Key, Progress, Running, Standing
from holdfast.reports.matrix import is_alarm
from holdfast.reports.model import Fold, sentence_of
from holdfast.reports.result import finding_of
from holdfast.reports.summary import check_line, plan_line, summary_lines, waiting_line
from holdfast.reports.text import as_json
from holdfast.run.events import (
    CheckFinished,
    CheckStarted,
    CheckWaiting,
    Event,
    PlanMade,
    RowPlan,
    RunFinished,
    RunStarted,
    RunWaiting,
)
from holdfast.spec.verdict import Verdict

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
    "survived": "bold red",
    "not-judged": "magenta",
    "excluded": "dim",
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
        self._rows: dict[str, RowPlan] = {}
        self._ids: dict[str, list[str]] = {}
        self._found: set[str] = set()
        self._broken: dict[str, str] = {}
        self._tried: set[str] = set()
        self._caught: set[str] = set()
        self._progress = Progress(clock=self._now)
        # FORCE_COLOR makes Rich call a pipe a terminal; colours are welcome there, a moving screen is not.
        real = self._console.file.isatty() and not self._console.is_dumb_terminal
        wanted = real if live is None else live
        self._live = (
            Live(self._progress, console=self._console, refresh_per_second=4, transient=True) if wanted else None
        )

    def handle(self, event: Event) -> None:
        """Shows one event: those of the stream, and `CheckWaiting`, which is shown and never written."""
        said = self._fold.add(event)
        if isinstance(said, CheckStarted | CheckWaiting | CheckFinished) and said.variant and not self._fold.of_mutants:
            return
        match said:
            case RunStarted():
                self._run_started(said)
            case PlanMade():
                self._plan(said)
            case RunWaiting():
                self._stand_still(said)
            case CheckStarted():
                self._check_started(said)
            case CheckWaiting():
                self._check_waiting(said)
            case CheckFinished():
                self._check_finished(said)
            case RunFinished():
                self._run_finished()

    def close(self) -> None:
        """Ends the live screen. May be called at any time: a run that breaks off must not leave a hidden cursor."""
        if self._live:
            self._live.stop()

    @property
    def width(self) -> int:
        return min(self._console.width, WIDTH) if self._console.is_terminal else WIDTH

    def _now(self) -> float:
        return self._clock() - self._zero

    def _run_started(self, said: RunStarted) -> None:
        self._zero = self._clock() - said.at
        self._progress.standing = None
        self._print(
            f"holdfast {said.holdfast}  {', '.join(said.specs)}  "
            f"target {said.target.name} {said.target.version}".rstrip()
            + _roles(said.target.roles)
            + f"  profile {said.profile}  time scale {said.time_scale}  seed {said.seed}"
        )

    def _plan(self, said: PlanMade) -> None:
        for row in said.rows:
            self._rows[row.id] = row
            for part in row.parts:
                for check in part.checks:
                    self._ids.setdefault(check, []).append(row.id)
        document = self._fold.results().to_json()
        self._print(self._headed(plan_line(document)))
        self._progress.planned_wall_s = said.planned_wall_s
        if self._fold.of_mutants:
            self._broken = {mutant.id: mutant.requirement for mutant in said.mutants if mutant.excluded is None}
            self._progress.total = len(self._broken)
            self._progress.caught = 0
        else:
            self._progress.total = document["plan"]["reconciliation"]["checks_planned"] * document["repeat"]
        if self._live:
            self._live.start()

    def _stand_still(self, said: RunWaiting) -> None:
        """Shows a wait of the whole run: a line of its own in a log, one that counts down on a live screen."""
        self._progress.standing = Standing(said.waiting_for, None if said.for_s is None else said.at + said.for_s)
        if not (self._live and self._live.is_started):
            self._print(self._headed(waiting_line(said)))

    def _check_started(self, said: CheckStarted) -> None:
        self._progress.standing = None
        self._progress.running[_key(said)] = Running(
            title=said.title or sentence_of(said.check),
            ids=[said.variant] if said.variant else list(dict.fromkeys(self._ids.get(said.check, []))),
            started=said.at,
            planned_s=said.planned_s,
        )

    def _check_waiting(self, said: CheckWaiting) -> None:
        if running := self._progress.running.get(_key(said)):
            running.waiting_for = said.waiting_for
            running.until_s = None if said.until_s is None else said.at + said.until_s

    def _check_finished(self, said: CheckFinished) -> None:
        self._progress.running.pop(_key(said), None)
        if self._fold.of_mutants:
            self._mutant_finished(said)
            return
        loud = said.verdict not in _QUIET
        self._progress.done += said.final
        self._progress.red += said.final and loud
        if loud or not self._live:
            self._print(check_line(said, self.width), said.verdict)
        if said.final and loud:
            self._print_finding(said)

    def _mutant_finished(self, said: CheckFinished) -> None:
        """Counts the mutant as tried or caught; prints false alarms only, since checks ought to fail on mutants."""
        if said.variant:
            self._tried |= {said.variant} if said.final else set()
            row = self._broken.get(said.variant)
            if is_alarm(said) and (not row or row in {claim.id for claim in said.verifies}):
                self._caught.add(said.variant)
            self._progress.done, self._progress.caught = len(self._tried), len(self._caught)
        elif is_alarm(said):
            self._print("false alarm on a clean copy:")
            self._print(check_line(said, self.width), said.verdict)
            self._print_finding(said)
            self._progress.red = len(self._found)

    def _print_finding(self, said: CheckFinished) -> None:
        """Prints the finding of a check once, and a common cause once for all checks that it blocks.

        With --repeat a finding would come again, and the counts are in the report.
        """
        once = said.blocked_by or said.check
        if once in self._found:
            return
        self._found.add(once)
        ids = dict.fromkeys([claim.id for claim in said.verifies] if said.decided is None else said.decided)
        rows = [as_json(self._rows[requirement]) for requirement in ids if requirement in self._rows]
        finding = finding_of(said, said.title or sentence_of(said.check))
        self._print(f"\n{render_finding(rows, finding, self.width)}\n", said.verdict)

    def _run_finished(self) -> None:
        self.close()
        lines = summary_lines(self._fold.results().to_json(), self.width)
        self.show_lines(["", *lines])

    def _headed(self, text: str) -> str:
        """A line about the whole run; where several share the screen, with the name of this one."""
        return text

    def show_lines(self, lines: Sequence[str]) -> None:
        """Prints lines of a summary: a verdict at the beginning of a line has its colour, but in the last one."""
        for line in lines[:-1]:
            self._print(line, line.strip().partition(" ")[0])
        self._print(lines[-1])

    def _print(self, text: str, verdict: str = "") -> None:
        """Prints one block, with the verdict in its colour where the text has it as a word of its own."""
        shown = Text(_encodable(text, self._console.encoding))
        if style := STYLES.get(verdict):
            shown.highlight_regex(rf"(?m)(^ *{verdict}(?= )|(?<=  ){verdict}(?: \(absent\))?$)", style)
        self._console.print(shown, soft_wrap=True, highlight=False, markup=False, emoji=False)


def _key(said: CheckStarted | CheckWaiting | CheckFinished) -> Key:
    return Key(said.check, said.repeat, said.variant)


def _encodable(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _roles(counts: Mapping[str, int]) -> str:
    """The roles of the target, where it has several."""
    return f" ({', '.join(f'{count} {role}' for role, count in counts.items())})" if len(counts) > 1 else ""
