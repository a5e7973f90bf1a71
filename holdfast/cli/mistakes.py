"""What a user can get wrong about a run, refused before anything starts, each with one sentence.

What is wrong whatever the target is (a negative number, no duration) is refused by `holdfast.run.option_values`.
"""

import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from holdfast import rooms
from holdfast.check.walk.replay import ReplayError
from holdfast.cli.violations import refuse_violation
from holdfast.run.option_values import OptionError
from holdfast.run.options import FaultEngine, RunOptions
from holdfast.run.stream import EVENTS
from holdfast.run.suite import SCENARIOS, WALKS, check_names
from holdfast.spec.catalogue import CatalogueError, builtin
from holdfast.target.descriptor import Target, TargetError

_SCENARIO = re.compile(r"test_([a-z]+)0*(\d+)_")


def refuse_mistakes(key: str, options: RunOptions) -> None:
    """Raised here as one sentence; under pytest they would have its wording."""
    catalogue = builtin(key)
    if options.catalogue not in (None, catalogue.version):
        raise CatalogueError(f"{key}: the catalogue has version {catalogue.version}, not {options.catalogue}")
    target = options.read_target()
    if target.spec != key:
        raise TargetError(f"{target.file}: a target of {target.spec}, not of {key}")
    refuse_violation(target, options.violate)
    options.selection.check(catalogue, check_names(key) if options.only else ())
    if options.last_failed:
        refuse_without_failures(options.results or Path())
    if options.walks:
        _refuse_walk_mistakes(key, options)
    if options.scenarios:
        _refuse_chaos_mistakes(target, options)
    refuse_folder(options.results)  # the last, since it makes the folder


def refuse_scenarios(keys: Sequence[str], names: Sequence[str]) -> None:
    """Raises CatalogueError for a scenario that none of these specs has."""
    there = {builtin(key).key: scenario_names(key) for key in keys}
    for name in names:
        if not any(name.upper() in mine for mine in there.values()):
            known = "; ".join(f"{key} has {', '.join(mine)}" for key, mine in there.items())
            raise CatalogueError(f"{name}: no such scenario; {known}")


def scenario_names(key: str) -> list[str]:
    """The scenarios of a spec as users write them: C3 for `test_c03_…`."""
    found = (_SCENARIO.match(check.rpartition("::")[2]) for check in check_names(f"{key}/{SCENARIOS}"))
    numbers = sorted({(match[1].upper(), int(match[2])) for match in found if match})
    return [f"{letter}{number}" for letter, number in numbers]


def _refuse_walk_mistakes(key: str, options: RunOptions) -> None:
    if not (rooms.folder("conformance") / key / WALKS).is_file():
        raise CatalogueError(f"{key}: no model to walk over yet")
    options.read_against(options.read_target())
    order = options.walk_order
    if order and order.replay and order.replay.spec != key:
        raise ReplayError(f"{options.replay}: a walk of {order.replay.spec}, not of {key}")


def _refuse_chaos_mistakes(target: Target, options: RunOptions) -> None:
    if options.schedule:
        from holdfast.chaos.schedules.storm import load_for

        load_for(target, options.schedule)
    if options.engine is FaultEngine.TOXIPROXY:
        from holdfast.chaos.engines import must_have_toxiproxy

        must_have_toxiproxy()


def refuse_folder(results: Path | None, asked: str = "") -> None:
    """Raises OptionError unless files can be written there, as was `asked` for; makes the folder."""
    folder = results or Path()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise OptionError(
            f"{asked or f'--results {folder}'}: can't be written to ({why}); name another folder"
        ) from error


def refuse_without_failures(results: Path) -> None:
    """Raises OptionError unless the last run in this folder left failures to run again."""
    if failed_last(results):
        return
    if (results / EVENTS).is_file():
        raise OptionError(f"--last-failed: nothing failed in the last run in {results}; leave it out to run everything")
    raise OptionError(f"--last-failed: there was no run in {results} yet; leave it out, or name --results of that run")


def failed_last(results: Path) -> bool:
    """Whether pytest's own cache of that run lists failures."""
    try:
        return bool(json.loads((cache_folder(results) / "v" / "cache" / "lastfailed").read_text("utf-8")))
    except (OSError, ValueError):
        return False


def cache_folder(results: Path) -> Path:
    return (results / ".cache").absolute()
