"""`holdfast serve`: the reference servers of a spec, standing until you stop them, with a descriptor of them."""

import contextlib
import importlib
import json
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast.catalogue import CatalogueError, builtin
from holdfast.deployment import Deployment, Wanted
from holdfast.stream import Stream
from holdfast.target import Target, builtin_path, load
from holdfast.wiring import Engine, EngineOptions


def serve(key: str, *, nodes: int, time_scale: float | None, violate: str | None, descriptor: Path | None) -> int:
    catalogue, target = builtin(key), load(builtin_path(key)).at_scale(time_scale)
    also = _also_broken(key, violate) if violate else ()
    target = replace(target, nodes=_so_many(target, nodes))
    timings = target.timings(catalogue)
    engine = Engine(target, Stream(None), EngineOptions())
    try:
        engine.open()
        wanted = Wanted("shared", frozenset(), {}, variant=violate or "")
        deployment = engine.lease(wanted, target, timings)
        text = "\n".join(_describe(target, deployment, engine.folder, violate, also)) + "\n"
        if descriptor:
            descriptor.write_text(text)
        print(text, flush=True)
        _until_stopped()
    finally:
        engine.close()
    return 0


def _also_broken(key: str, violate: str) -> tuple[str, ...]:
    """The other requirements that this mutant cannot but break; an unknown mutant is refused."""
    known = importlib.import_module(f"holdfast.reference.{key}.mutants.registry").all_mutants()
    if violate in known:
        also: tuple[str, ...] = known[violate].also
        return also
    near = [id_ for id_ in known if id_.startswith(violate.partition("/")[0])]
    hint = f"there are {', '.join(near)}" if near else "write it as ID/n, e.g. " + next(iter(known), "AD-RATE-03/1")
    raise CatalogueError(f"{violate}: no mutant of {key}; {hint}")


def _so_many(target: Target, count: int) -> tuple[Any, ...]:
    spare = target.nodes[-1]
    more = [replace(spare, name=f"n{number}") for number in range(len(target.nodes) + 1, count + 1)]
    return (*target.nodes, *more)[:count]


def _describe(
    target: Target, deployment: Deployment, folder: Path, violate: str | None, also: tuple[str, ...]
) -> Iterator[str]:
    """A descriptor of what stands here: by URL, since these processes are ours to start and stop, not the suite's."""
    if also:
        yield f"# {violate} cannot but break these rows too: {', '.join(also)}"
    yield "[target]"
    yield f'name = "holdfast reference{f" violating {violate}" if violate else ""}"'
    yield f'spec = "{target.spec}"'
    yield f'version = "{target.version}"'
    yield f'profile = "{"store" if deployment.store else "wire"}"'
    yield f"time_scale = {target.time_scale:g}"
    for spec, node in zip(target.nodes, deployment.nodes.values(), strict=True):
        yield f'\n[[node]]\nname = "{node.name}"\nurls = {_inline(dict(node.urls))}'
        if spec.ready_as:
            yield f'ready = "{spec.ready}"\nready_as = "{deployment.fill(spec.ready_as, node.name)}"'
    yield f"\n[credentials]\n{_table({name: _filled(deployment, value) for name, value in target.credentials.items()})}"
    yield "\n[observe]"
    if deployment.store:
        yield f'redis = "{deployment.store.url}"'
    yield from (f'{name} = "{target.observe[name]}"' for name in ("prefix", "metrics") if name in target.observe)
    yield f'events = "{folder}/d1-{{node}}.log"'
    if target.time_scale < 1 and target.scaled_limits:
        yield f"\n[limits]\n{_table(target.scaled_limits)}"
    yield f"\n[dialect]\n{_table({name: value for name, value in target.dialect.items() if '{' not in str(value)})}"


def _filled(deployment: Deployment, value: Any) -> Any:
    """Where bundles and tools really are; a path for each node keeps its {node}."""
    return deployment.fill(value, "{node}") if isinstance(value, str) else value


def _inline(table: dict[str, Any]) -> str:
    return "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in table.items()) + " }"


def _table(table: Any) -> str:
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in table.items())


def _until_stopped() -> None:
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, stop)
    with contextlib.suppress(KeyboardInterrupt):
        stopped.wait()
