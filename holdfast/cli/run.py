"""`holdfast run`: pytest underneath, our own words on top."""

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path

import pytest

from holdfast.catalogue import CatalogueError, builtin, builtin_keys, seconds
from holdfast.chaos.storm import load_for
from holdfast.plan import Selection
from holdfast.plugin import session_of
from holdfast.reports.files import write_all
from holdfast.reports.terminal import Terminal
from holdfast.session import ignore_signals
from holdfast.suite import SCENARIOS
from holdfast.target import Target, TargetError, builtin_path, load


@dataclass(frozen=True)
class Scenarios:
    """Chaos instead of the suite: which stories, on which engine, or so many drawn at random."""

    names: tuple[str, ...] = ()
    engine: str = "relay"
    random: int = 0
    schedule: Path | None = None


@dataclass(frozen=True)
class Asked:
    target: Path | None
    catalogue: str | None
    time_scale: float | None
    profile: str | None
    only: tuple[str, ...]
    level: str | None
    results: Path
    fail_fast: bool
    last_failed: bool
    repeat: int
    stress: int
    budget: str | None
    launcher: str
    redis_url: str | None
    seed: int
    as_json: bool
    scenarios: Scenarios | None = None


class _Listener:
    """Hangs our terminal on the run's stream, and keeps what pytest would have said for us to say."""

    def __init__(self, terminal: Terminal | None) -> None:
        self.problem: str | None = None
        self.interrupted = False
        self._terminal = terminal

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self, config: pytest.Config) -> None:
        session = session_of(config)
        if session is not None and self._terminal is not None:
            session.stream.reporters.append(self._terminal)

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


def run_all(keys: list[str], asked: Asked) -> int:
    chosen = keys or ([load(asked.target).spec] if asked.target else builtin_keys())
    several = len(chosen) > 1
    codes = []
    for key in chosen:
        code, interrupted = _run(key, replace(asked, results=asked.results / key) if several else asked)
        codes.append(code)
        if interrupted:
            break
    return max(codes, key=(0, 2, 1).index)


def _run(key: str, asked: Asked) -> tuple[int, bool]:
    """The exit code, and whether the user wants no more."""
    _refuse_mistakes(key, asked)
    terminal = None if asked.as_json else Terminal()
    listener = _Listener(terminal)
    # Foreign plugins change how items run; a verdict must not depend on what else is installed.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    (asked.results / "events.jsonl").unlink(missing_ok=True)
    try:
        code = pytest.main(_arguments(key, asked), plugins=[listener])
    finally:
        if terminal:
            terminal.close()
    if listener.problem:
        print(f"holdfast: {listener.problem}", file=sys.stderr)
        return 2, False
    if not _anything_happened(asked.results):
        return (2 if code else 0), listener.interrupted
    results = write_all(asked.results)
    if asked.as_json:
        print(json.dumps(results.to_json(), ensure_ascii=False))
    else:
        print(f"report {asked.results / 'report.html'}")
    return results.exit, listener.interrupted


def _refuse_mistakes(key: str, asked: Asked) -> None:
    """Here, where they are one sentence of ours, and not under pytest, which has its own way to say it."""
    catalogue = builtin(key)
    if asked.catalogue not in (None, catalogue.version):
        raise CatalogueError(f"{key}: the catalogue has version {catalogue.version}, not {asked.catalogue}")
    target = load(asked.target or builtin_path(key)).at_scale(asked.time_scale).with_profile(asked.profile)
    if target.spec != key:
        raise TargetError(f"{target.file}: a target of {target.spec}, not of {key}")
    Selection(asked.only, asked.level).check(catalogue)
    if asked.budget:
        seconds(asked.budget)
    if asked.scenarios:
        _refuse_chaos_mistakes(target, asked.scenarios)


def _refuse_chaos_mistakes(target: Target, scenarios: Scenarios) -> None:
    if scenarios.schedule:
        load_for(target, scenarios.schedule)
    if scenarios.engine == "toxiproxy":
        from holdfast.chaos.engines import must_have_toxiproxy

        must_have_toxiproxy()


def _anything_happened(results: Path) -> bool:
    events = results / "events.jsonl"
    return events.exists() and events.stat().st_size > 0


def _arguments(key: str, asked: Asked) -> list[str]:
    package = Path(str(resources.files("holdfast")))
    arguments = [
        str(package / "conformance" / key / _place(asked.scenarios)),
        f"--rootdir={package}",
        f"--confcutdir={package}",
        "-c",
        os.devnull,
        "-p",
        "holdfast.plugin",
        "-p",
        "no:terminal",
        "-o",
        f"cache_dir={(asked.results / '.cache').absolute()}",
        "-o",
        "python_files=test_*.py",
        "--import-mode=importlib" if "site-packages" in str(package) else "--import-mode=prepend",
        f"--target={asked.target or builtin_path(key)}",
        f"--results={asked.results}",
        f"--repeat={asked.repeat}",
        f"--stress={asked.stress}",
        f"--launcher={asked.launcher}",
        f"--seed={asked.seed}",
        *(f"--only={id_}" for id_ in asked.only),
    ]
    optional = {
        "--time-scale": asked.time_scale,
        "--profile": asked.profile,
        "--level": asked.level,
        "--budget": asked.budget,
        "--redis-url": asked.redis_url,
    }
    arguments += [f"{name}={value}" for name, value in optional.items() if value is not None]
    arguments += ["-x"] * asked.fail_fast + ["--lf"] * asked.last_failed
    return arguments + _chaos_arguments(asked.scenarios)


def _place(scenarios: Scenarios | None) -> str:
    if scenarios is None:
        return ""
    return f"{SCENARIOS}/test_random.py" if scenarios.random else SCENARIOS


def _chaos_arguments(scenarios: Scenarios | None) -> list[str]:
    if scenarios is None:
        return []
    chosen = " or ".join(f"test_{name.lower().replace('-', '_')}_" for name in map(_padded, scenarios.names))
    words = ["--scenarios", f"--engine={scenarios.engine}", f"--random={scenarios.random}"]
    words += [f"--schedule={scenarios.schedule}"] if scenarios.schedule else []
    return [*words, *(["-k", chosen] if chosen else [])]


def _padded(name: str) -> str:
    """C3 as the functions are named, c03, so that they stand in order."""
    letters, digits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    return f"{letters}{int(digits):02}" if digits else name
