"""The pytest plugin: checks are ordinary pytest items whose coroutines run overlapped. Inert without --target."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from holdfast.catalogue import CatalogueError
from holdfast.check import CheckSpec, spec_of
from holdfast.plan import PlanError
from holdfast.suite import SCENARIOS
from holdfast.target import TargetError

if TYPE_CHECKING:
    from holdfast.session import CheckSession

_KEY = pytest.StashKey["CheckSession"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("holdfast")
    group.addoption("--target", metavar="FILE", help="descriptor of the target, or the key of a built-in one")
    group.addoption("--time-scale", type=float, metavar="X", help="1 = the spec's own time")
    group.addoption("--profile", metavar="NAME", help="answer for this profile instead of the descriptor's")
    group.addoption("--only", action="append", default=[], metavar="ID", help="this requirement or group alone")
    group.addoption("--level", choices=["must", "should", "may"], help="leave weaker requirements out")
    group.addoption("--results", type=Path, metavar="DIR", help="where events.jsonl and the reports go")
    group.addoption("--launcher", choices=["fork", "exec"], default="fork", help="how Python nodes are started")
    group.addoption("--redis-url", metavar="URL", help="use this Redis instead of the embedded one")
    group.addoption("--repeat", type=int, default=1, metavar="N", help="run every check N times")
    group.addoption("--stress", type=int, default=0, metavar="N", help="keep N cores busy meanwhile")
    group.addoption("--overlap", type=int, metavar="N", help="how many checks wait at the same time")
    group.addoption("--budget", metavar="TIME", help="the most telling checks that fit, e.g. 30m")
    group.addoption("--violate", metavar="ID/n", help="start the built-in target as this mutant")
    group.addoption("--scenarios", action="store_true", help="the chaos scenarios instead of the suite")
    group.addoption("--random", type=int, default=0, metavar="N", help="so many drawn schedules of faults")
    group.addoption("--schedule", type=Path, metavar="FILE", help="this schedule of faults instead of a drawn one")
    group.addoption("--engine", choices=["relay", "toxiproxy"], default="relay", help="what scenarios inject with")
    group.addoption("--seed", type=int, default=1, metavar="S", help="of every random draw in the suite")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("target", None):
        return
    if getattr(config.option, "numprocesses", None):
        raise pytest.UsageError(
            "checks overlap on one loop already: leave out -n, which would launch every check twice"
        )
    # Everybody's pytest loads this module; only a run against a target needs the rest.
    from holdfast.session import CheckSession, Options

    try:
        config.stash[_KEY] = CheckSession(Options.from_pytest(config))
    except (TargetError, CatalogueError) as error:
        raise pytest.UsageError(str(error)) from error


def session_of(config: pytest.Config) -> "CheckSession | None":
    return config.stash.get(_KEY, None)


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Before the suite is imported, which takes longer than to see that there is nobody to talk to."""
    checks = session_of(session.config)
    if checks is not None and not session.config.option.collectonly:
        checks.look_before()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Scenarios stand beside the suite and are no part of it: they run when they are asked for."""
    if "conformance" not in collection_path.parts:
        return None
    if collection_path.name == "test_random.py" and not config.getoption("random", default=0):
        return True
    return True if collection_path.name == SCENARIOS and not config.getoption("scenarios", default=False) else None


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A check with a parameter `draw` runs once for each schedule that is drawn."""
    if "draw" in metafunc.fixturenames and spec_of(metafunc.function):
        metafunc.parametrize("draw", range(1, 1 + metafunc.config.getoption("random", default=0)))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Any:
    everything = list(items)
    yield
    checks = session_of(config)
    if checks is None:
        if any(_spec(item) for item in items) and not config.option.collectonly:
            raise pytest.UsageError("these are checks of a target: give --target FILE (holdfast init writes one)")
        return
    kept = set(items)
    deselected = frozenset(check_id(item) for item in everything if item not in kept)
    try:
        chosen = checks.plan({check_id(item): spec for item in everything if (spec := _spec(item))}, deselected)
    except PlanError as error:
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
    for id_ in checks.run(params):
        item = by_id[id_]
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
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
    checks.tell(check_id(pyfuncitem))
    return True


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    checks, spec, allure = session_of(item.config), _spec(item), item.config.pluginmanager.get_plugin("allure_listener")
    if checks is None or spec is None or allure is None:
        return
    from holdfast.replay import replay  # loads allure, which is here only if someone asked for it

    if times := checks.times(check_id(item)):
        requirements = list(dict.fromkeys(claim.id for claim in spec.claims))
        replay(allure, checks.worst(check_id(item)), requirements, times[0])


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
        checks.give_signals_back()


def _spec(item: pytest.Item) -> CheckSpec | None:
    return spec_of(getattr(item, "function", None))


def check_id(item: pytest.Item) -> str:
    """The node id as a user knows it, whichever way the file was reached."""
    return item.nodeid.split("conformance/", 1)[-1] if "conformance/" in item.nodeid else item.nodeid


def params_of(item: pytest.Item) -> dict[str, Any]:
    callspec = getattr(item, "callspec", None)
    return dict(callspec.params) if callspec else {}
