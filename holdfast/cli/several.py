"""Several specs with one command: what each runner is ordered to do, and what is made of all that they did.

Each spec has its own folder of results, with every report; `index.html` beside these folders leads to them. Display,
summary, JSON document and exit code are one for all.
"""

import json
import queue
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.cli.mistakes import failed_last, refuse_mistakes
from holdfast.reports.files import RESULTS, anything_happened, read_results, write_all
from holdfast.reports.index import forget_all, write_index
from holdfast.reports.terminals import Terminals
from holdfast.reports.text import Json
from holdfast.reports.together import together
from holdfast.run.cost import cores, cpu_seconds
from holdfast.run.events import Event
from holdfast.run.options import RunOptions
from holdfast.run.runners import Ending, Order, Runners
from holdfast.run.selection import PlanError, Selection, known, unknown
from holdfast.run.signals import ignore_signals
from holdfast.run.suite import check_names, checks_of
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import TargetError

# A check costs about this much besides what it plans to wait.
_WORK_OF_A_CHECK = 1.0


def run_several(
    work: str, keys: Sequence[str], options: RunOptions, scenarios: tuple[str, ...] = (), *, as_json: bool
) -> int:
    """Run these specs, each in a runner of its own, and return one exit code; `work` is `run` or `mutants`."""
    began = time.monotonic()
    jobs = cores() if options.jobs is None else options.jobs
    orders = _orders(work, keys, options, scenarios, jobs)
    screen = _Screen(None if as_json else Terminals([order.key for order in orders]))
    shown = [replace(order, waiting=screen.moves) for order in _longest_first(orders, jobs)]
    runners = Runners(shown, jobs, screen.tell, options.stress)
    try:
        endings = runners.run()
    finally:
        screen.close()
    if runners.signals.name:
        ignore_signals()  # they were given back, but the reports are still to be written
    folders = {order.key: order.options.results or Path() for order in orders}
    documents = {key: found for key, folder in folders.items() if (found := _document(folder))}
    problems = {key: text for key in folders if (text := _problem(key, endings, documents, runners.signals.name))}
    document = together(documents, problems, time.monotonic() - began, cpu_seconds(), cores())
    index = write_index(options.results or Path(), document)
    if as_json:
        print(json.dumps(document, ensure_ascii=False))
    else:
        screen.summary(document)
        print(f"report {index}")
    for key, text in problems.items():
        print(f"holdfast: {key}: {text}", file=sys.stderr)
    code: int = document["exit"]
    return code


def _orders(work: str, keys: Sequence[str], options: RunOptions, scenarios: tuple[str, ...], jobs: int) -> list[Order]:
    if options.target:
        raise TargetError(f"--target {options.target} is of one spec; name that spec alone")
    folder = options.results or Path()
    parts = _only_of(_failed(keys, folder) if options.last_failed else keys, options.only)
    orders = []
    for key, only in parts.items():
        asked = replace(options, results=folder / key, only=only, target=None if work == "mutants" else key)
        scale = asked.read_target(key).time_scale
        asked = replace(asked, overlap=asked.overlap_at(scale, min(jobs, len(parts))))
        if work == "run":
            refuse_mistakes(key, asked)
        orders.append(Order(work, key, asked, scenarios, argv=tuple(sys.argv[1:])))
    for place in (folder, *(folder / key for key in parts)):
        forget_all(place)
    return orders


def _only_of(keys: Sequence[str], only: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Deal the names of `--only` to the specs that have them; a spec that has none of them is left out."""
    keys = list(dict.fromkeys(keys))
    if not only:
        return dict.fromkeys(keys, ())
    wanted = Selection(only).names
    theirs = {key: tuple(name for name in wanted if _has(key, name)) for key in keys}
    for name in wanted:
        if not any(name in mine for mine in theirs.values()):
            raise PlanError(unknown(name, map(builtin, keys), [check for key in keys for check in check_names(key)]))
    return {key: mine for key, mine in theirs.items() if mine}


def _has(key: str, name: str) -> bool:
    """Whether a spec has this row, group or check; of a mutant (`ID/n`) its row counts."""
    row = name if "::" in name else name.partition("/")[0]
    return known(row, builtin(key), check_names(key))


def _failed(keys: Sequence[str], folder: Path) -> Sequence[str]:
    """The specs of which something failed in the last run; all of them, to be refused one by one, if nothing did."""
    return [key for key in keys if failed_last(folder / key)] or keys


def _longest_first(orders: list[Order], jobs: int) -> list[Order]:
    """Put the spec that takes longest first, where it matters: where not all of them start at once."""
    return orders if len(orders) <= jobs else sorted(orders, key=_estimate, reverse=True)


def _estimate(order: Order) -> float:
    """What the checks of the spec plan to wait and to work; for mutants as often as there are violations."""
    catalogue, target = builtin(order.key), order.options.read_target(order.key)
    timings = target.timings(catalogue)
    checks = checks_of(order.key, scenarios=order.options.scenarios)
    takes = order.options.selection.among(checks).takes
    rows = catalogue.requirements
    chosen = [check for check in checks.values() if any(takes(rows[claim.id]) for claim in check.claims)]
    planned = sum(timings.evaluate(check.waits) + _WORK_OF_A_CHECK for check in chosen)
    violations = sum(len(row.violations) for row in catalogue)
    return planned * (violations / max(1, len(list(catalogue))) if order.work == "mutants" else 1)


def _document(folder: Path) -> Json | None:
    """The results of a spec; made here of the events of a runner that did not come to do so."""
    if not anything_happened(folder):
        return None
    if not (folder / RESULTS).exists():
        write_all(folder)
    return read_results(folder)


def _problem(key: str, endings: Mapping[str, Ending], documents: Mapping[str, Json], stopped: str | None) -> str:
    """Why a spec was not run to its end, where its own results do not say so."""
    ending, document = endings.get(key), documents.get(key)
    if stopped or ending is None:
        return "" if document else f"not begun before {stopped}"
    if ending.killed:
        return f"its runner was ended by signal {-ending.returncode}; what it had found is reported"
    if document and document["summary"]["exit"] == ending.returncode:
        return ""
    return ending.words or f"its runner ended with {ending.returncode} and said nothing"


class _Screen:
    """Draws in a thread of its own: a terminal that blocks must not keep runners from their places."""

    def __init__(self, terminals: Terminals | None) -> None:
        self._terminals = terminals
        self._events: queue.SimpleQueue[tuple[str, Event] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._draw, name="display", daemon=True)
        self._thread.start()

    @property
    def moves(self) -> bool:
        return self._terminals is not None and self._terminals.live

    def tell(self, key: str, event: Event) -> None:
        self._events.put((key, event))

    def close(self) -> None:
        self._events.put(None)
        self._thread.join()
        if self._terminals:
            self._terminals.close()

    def summary(self, document: Json) -> None:
        if self._terminals:
            self._terminals.summary(document)

    def _draw(self) -> None:
        while (told := self._events.get()) is not None:
            if self._terminals:
                self._terminals.handle(*told)
