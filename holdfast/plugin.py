"""The pytest plugin: checks are ordinary pytest items whose coroutines run overlapped. Inert without a target.

pytest collects the checks and asks for them one by one; the session runs them all at once. The two meet here: the
items are handed to the session as a plan, the session hands back ids as checks end, and only then pytest's own protocol
runs for that item, with the outcome already known. So `-k`, node ids, parametrize, JUnit and Allure work as everywhere,
while the waiting of all checks overlaps.

`holdfast run` hands its record of options over as an object (`Handover`); plain pytest builds the record from flags.
Every flag has our prefix: this module is loaded into everybody's pytest, where `--profile` or `--target` may be
another plugin's.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.check.verifies import CheckSpec, spec_of
from holdfast.run.collect import pytest_collect_directory, pytest_pycollect_makemodule
from holdfast.run.option_values import OptionError, refuse_values
from holdfast.run.options import PYTEST_FLAGS, Option, RunOptions, options
from holdfast.run.perform import Outcome
from holdfast.run.selection import PlanError
from holdfast.run.stream import Reporter
from holdfast.run.suite import SCENARIOS
from holdfast.spec.catalogue import CatalogueError
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import TargetError

if TYPE_CHECKING:
    from holdfast.run.session import CheckSession
    from holdfast.run.tokens import Tokens

# Hooks of this plugin that have a module of their own.
__all__ = ["pytest_collect_directory", "pytest_pycollect_makemodule"]

_KEY = pytest.StashKey["CheckSession"]()
# Nothing to be red about, but no pass either: pytest's word for that is "skipped".
_SKIPPED = frozenset({Verdict.WARN, Verdict.KNOWN, Verdict.PARTIAL, Verdict.NOT_OBSERVABLE, Verdict.NOT_APPLICABLE})


class Handover:
    """Carries the options, reporters and tokens of `holdfast run` to this plugin, past pytest's argv."""

    def __init__(self, options: RunOptions, reporters: Sequence[Reporter] = (), tokens: "Tokens | None" = None) -> None:
        self.options = options
        self.reporters = reporters
        self.tokens = tokens


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("holdfast")
    for name in PYTEST_FLAGS:
        group.addoption(options()[name].in_pytest, **_flag(options()[name]))


def _flag(option: Option) -> dict[str, Any]:
    """An option of the record in the words of argparse."""
    said: dict[str, Any] = {"help": option.flag.help, "default": option.default}
    if option.kind is bool:
        return {**said, "action": "store_true"}
    if option.many:
        return {**said, "action": "append", "default": [], "metavar": option.flag.metavar}
    if issubclass(option.kind, StrEnum):
        return {**said, "type": option.kind, "choices": list(option.kind)}
    return {**said, "type": option.kind, "metavar": option.flag.metavar}


def _options_of(config: pytest.Config) -> RunOptions | None:
    """What was handed over, or what pytest's flags say; None without a target."""
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, Handover):
            return plugin.options
    if not config.getoption("holdfast_target", None):
        return None
    given = {name: config.getoption(f"holdfast_{name}") for name in PYTEST_FLAGS}
    asked = RunOptions(**{**given, "only": tuple(given["only"])})
    refuse_values(asked)
    return asked


def pytest_configure(config: pytest.Config) -> None:
    try:
        asked = _options_of(config)
    except OptionError as error:
        raise pytest.UsageError(str(error)) from error
    if asked is None:
        return
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(
            "checks overlap on one loop already: leave out -n, which would launch every check twice"
        )
    # Everybody's pytest loads this module; only a run against a target needs the rest.
    from holdfast.run.session import CheckSession

    try:
        session = config.stash[_KEY] = CheckSession(asked)
    except (TargetError, CatalogueError) as error:
        raise pytest.UsageError(str(error)) from error
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, Handover):
            session.stream.reporters += plugin.reporters
            session.tokens = plugin.tokens


def session_of(config: pytest.Config) -> "CheckSession | None":
    return config.stash.get(_KEY, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Before the suite is imported, which takes longer than to see that there is nobody to talk to."""
    checks = session_of(session.config)
    if checks is not None and not session.config.option.collectonly:
        with _one_sentence():
            checks.look_before()


@contextmanager
def _one_sentence() -> Iterator[None]:
    """What can't be run at all ends with one sentence and exit code 2."""
    from holdfast.run.session import CannotRunError

    try:
        yield
    except CannotRunError as problem:
        pytest.exit(str(problem), returncode=2)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Scenarios are beside the suite and no part of it: they run when they are asked for."""
    if "conformance" not in collection_path.parts:
        return None
    asked = _asked(config)
    if collection_path.name == "test_random.py" and not asked.random:
        return True
    return True if collection_path.name == SCENARIOS and not asked.scenarios else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A check with a parameter `draw` runs once for each schedule that is drawn."""
    if "draw" in metafunc.fixturenames and spec_of(metafunc.function):
        metafunc.parametrize("draw", range(1, 1 + _asked(metafunc.config).random))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Any:
    everything = list(items)
    yield
    checks = session_of(config)
    if checks is None:
        if any(_spec(item) for item in items) and not config.option.collectonly:
            raise pytest.UsageError(
                "these are checks of a target: give --holdfast-target FILE (holdfast init writes one)"
            )
        return
    kept = set(items)
    deselected = frozenset(check_id(item) for item in everything if item not in kept)
    try:
        chosen = checks.plan({check_id(item): spec for item in everything if (spec := _spec(item))}, deselected)
    except PlanError as error:
        if any(isinstance(plugin, Handover) for plugin in config.pluginmanager.get_plugins()):
            pytest.exit(str(error), returncode=2)  # `holdfast run` says it in its own words
        raise pytest.UsageError(str(error)) from error
    out = [item for item in items if check_id(item) not in chosen]
    items[:] = [item for item in items if check_id(item) in chosen]
    if out:
        config.hook.pytest_deselected(items=out)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    checks = session_of(session.config)
    if checks is None or session.config.option.collectonly:
        return None
    by_id = {check_id(item): item for item in session.items}
    params = {id_: params_of(item) for id_, item in by_id.items()}
    with _one_sentence():
        for id_ in checks.run(params):
            session.config.hook.pytest_runtest_protocol(item=by_id[id_], nextitem=None)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    checks = session_of(pyfuncitem.config)
    if checks is None or _spec(pyfuncitem) is None:
        return None
    _end_as(checks.worst(check_id(pyfuncitem)))
    return True


def _end_as(outcome: Outcome) -> None:
    """End the running item as pytest would end a test of this outcome."""
    if outcome.verdict in _SKIPPED:
        pytest.skip(f"{outcome.verdict}: {outcome.reason}")
    if outcome.verdict is not Verdict.PASS:
        pytest.fail(_finding_text(outcome), pytrace=False)


def _finding_text(outcome: Outcome) -> str:
    lines = [f"{outcome.verdict}: {outcome.reason}"]
    lines += [f"  expected  {text}" for text in outcome.expected]
    if outcome.seen is not None:
        lines.append(f"  seen      {outcome.seen}")
    lines += [f"  {line}" for line in outcome.evidence.transcript_lines()]
    return "\n".join(lines)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    checks, spec, allure = session_of(item.config), _spec(item), item.config.pluginmanager.get_plugin("allure_listener")
    if checks is None or spec is None or allure is None:
        return
    from holdfast.run.allure_steps import add_steps  # loads allure, which is here only if someone asked for it

    if times := checks.times(check_id(item)):
        requirements = list(dict.fromkeys(claim.id for claim in spec.claims))
        add_steps(allure, checks.worst(check_id(item)), requirements, times[0])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    report = yield
    checks = session_of(item.config)
    if checks is not None and call.when == "call" and (times := checks.times(check_id(item))):
        report.start, report.duration = times
        report.stop = report.start + report.duration
    return report


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    if checks := session_of(config):
        checks.close()
        checks.signals.give_back()


def _asked(config: pytest.Config) -> RunOptions:
    checks = session_of(config)
    return RunOptions() if checks is None else checks.options


def _spec(item: pytest.Item) -> CheckSpec | None:
    return spec_of(getattr(item, "function", None))


def check_id(item: pytest.Item) -> str:
    """The node id as a user knows it, whichever way the file was reached."""
    return item.nodeid.split("conformance/", 1)[-1] if "conformance/" in item.nodeid else item.nodeid


def params_of(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}
