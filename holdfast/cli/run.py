"""`holdfast run` and `holdfast chaos`: pytest underneath, our own words on top."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from holdfast import rooms
from holdfast.cli.mistakes import cache_folder, refuse_mistakes, refuse_scenarios
from holdfast.cli.screen import screen
from holdfast.cli.several import run_several
from holdfast.cli.wait import wait_for
from holdfast.plugin import Handover
from holdfast.reports.files import anything_happened, walk_files, write_all
from holdfast.reports.index import forget_all
from holdfast.reports.result import Results
from holdfast.run.options import RunOptions
from holdfast.run.plain_pytest import undisturbed
from holdfast.run.signals import ignore_signals
from holdfast.run.stream import Reporter
from holdfast.run.suite import SCENARIOS, WALKS
from holdfast.run.tokens import Tokens
from holdfast.spec.catalogue import builtin_keys


@dataclass(frozen=True)
class Ran:
    """What came of a suite; `problem` says why it could not be run, `results` are None if nothing happened."""

    code: int
    problem: str = ""
    results: Results | None = None


class _Listener(Handover):
    """Takes record, reporter and tokens to the plugin, and keeps what pytest would have said for us to say."""

    def __init__(self, options: RunOptions, reporter: Reporter | None, tokens: Tokens | None) -> None:
        super().__init__(options, [reporter] if reporter else [], tokens)
        self.problem: str | None = None
        self.interrupted = False

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        if isinstance(excinfo.value, pytest.exit.Exception):
            self.problem = excinfo.value.msg
        else:
            self.interrupted = True

    @pytest.hookimpl(wrapper=True)
    def pytest_unconfigure(self) -> Iterator[None]:
        yield
        if self.interrupted:
            ignore_signals()  # the session has given them back, but the reports are still to be written


def run_all(keys: list[str], options: RunOptions, scenarios: tuple[str, ...] = (), *, as_json: bool) -> int:
    """Run the suites of these specs; `scenarios` are the names of those that chaos is to run."""
    wait_for(options.read_target, options.target, options.wait)
    chosen = keys or ([options.read_target().spec] if options.target else builtin_keys())
    refuse_scenarios(chosen, scenarios)
    if len(chosen) > 1:
        return run_several("run", chosen, options, scenarios, as_json=as_json)
    (key,) = chosen
    with screen(wanted=not as_json) as terminal:
        ran = run_suite(key, replace(options, target=options.target or key), scenarios, terminal)
    if ran.problem:
        print(f"holdfast: {ran.problem}", file=sys.stderr)
    elif ran.results and as_json:
        print(json.dumps(ran.results.to_json(), ensure_ascii=False))
    elif ran.results:
        for file in walk_files(options.results or Path()):
            print(f"walk   {file}")
        if options.random and ran.code == 1:
            _tell_storm(key, options, ran.results)
        print(f"report {(options.results or Path()) / 'report.html'}")
    return ran.code


def _tell_storm(key: str, options: RunOptions, results: Results) -> None:
    """Makes a storm that failed short, and prints what is left of it."""
    from holdfast.cli.storms import shrink_storm

    if said := shrink_storm(key, options, results.to_json()):
        print(said)


def run_suite(
    key: str,
    options: RunOptions,
    scenarios: tuple[str, ...] = (),
    reporter: Reporter | None = None,
    tokens: Tokens | None = None,
) -> Ran:
    """Run the suite of one spec in this process, and write its reports."""
    refuse_mistakes(key, options)
    results = options.results or Path()
    listener = _Listener(options, reporter, tokens)
    forget_all(results)
    with undisturbed():
        code = pytest.main(_arguments(key, options, scenarios, results), plugins=[listener])
    if listener.problem:
        return Ran(2, listener.problem)
    if not anything_happened(results):
        return Ran(2 if code else 0)
    folded = write_all(results)
    return Ran(folded.exit, results=folded)


def _arguments(key: str, options: RunOptions, scenarios: tuple[str, ...], results: Path) -> list[str]:
    """What pytest itself has to know: where the checks are, how to import them, which of them."""
    suite = rooms.folder("conformance")
    chosen = " or ".join(f"test_{name.lower().replace('-', '_')}_" for name in map(_padded, scenarios))
    return [
        str(suite / key / _place(options)),
        f"--rootdir={suite.parent}",
        f"--confcutdir={suite}",
        *("-c", os.devnull, "-p", "holdfast.plugin", "-p", "no:terminal"),
        *("-o", f"cache_dir={cache_folder(results)}", "-o", "python_files=test_*.py"),
        "--assert=plain",  # a finding has the check's own words, and no expressions of Python below them
        "--import-mode=importlib" if "site-packages" in str(suite) else "--import-mode=prepend",
        *(["-x"] if options.fail_fast else []),
        *(["--lf"] if options.last_failed else []),
        *(["-k", chosen] if chosen else []),
    ]


def _place(options: RunOptions) -> str:
    if options.walks:
        return WALKS
    if not options.scenarios:
        return ""
    return f"{SCENARIOS}/test_random.py" if options.random else SCENARIOS


def _padded(name: str) -> str:
    """C3 as the functions are named, c03, so that they stand in order."""
    letters, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    return f"{letters}{int(digits):02}" if digits else name
