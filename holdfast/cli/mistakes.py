"""What a user can get wrong about a run, refused before anything starts, each with one sentence."""

from holdfast import rooms
from holdfast.check.walk.replay import ReplayError
from holdfast.run.options import FaultEngine, RunOptions
from holdfast.run.suite import WALKS
from holdfast.spec.catalogue import CatalogueError, builtin
from holdfast.target.descriptor import Target, TargetError


def refuse_mistakes(key: str, options: RunOptions) -> None:
    """Here, where they are one sentence of ours, and not under pytest, which words them its own way."""
    catalogue = builtin(key)
    if options.catalogue not in (None, catalogue.version):
        raise CatalogueError(f"{key}: the catalogue has version {catalogue.version}, not {options.catalogue}")
    target = options.read_target()
    if target.spec != key:
        raise TargetError(f"{target.file}: a target of {target.spec}, not of {key}")
    options.selection.check(catalogue)
    if options.budget_s is not None and options.budget_s <= 0:
        raise CatalogueError(f"--budget {options.budget}: no check fits into that")
    if options.walks:
        _refuse_walk_mistakes(key, options)
    if options.scenarios:
        _refuse_chaos_mistakes(target, options)


def _refuse_walk_mistakes(key: str, options: RunOptions) -> None:
    if not (rooms.folder("conformance") / key / WALKS).is_file():
        raise CatalogueError(f"{key}: no model to walk over yet")
    order = options.walk_order
    if order and order.seconds <= 0:
        raise CatalogueError(f"--for {options.for_}: no step fits into that")
    if order and order.steps is not None and order.steps < 1:
        raise CatalogueError(f"--steps {options.steps}: at least one step is needed")
    if order and order.replay and order.replay.spec != key:
        raise ReplayError(f"{options.replay}: a walk of {order.replay.spec}, not of {key}")


def _refuse_chaos_mistakes(target: Target, options: RunOptions) -> None:
    if options.schedule:
        from holdfast.chaos.schedules.storm import load_for

        load_for(target, options.schedule)
    if options.engine is FaultEngine.TOXIPROXY:
        from holdfast.chaos.engines import must_have_toxiproxy

        must_have_toxiproxy()
