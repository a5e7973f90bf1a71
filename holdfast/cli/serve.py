"""`holdfast serve`: runs the reference servers of a spec until it is stopped, and prints a descriptor of them."""

import contextlib
import json
import os
import signal
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast.cli.mistakes import refuse_folder
from holdfast.cli.store_members import watched_by, who_leads
from holdfast.cli.violations import also_broken, as_written
from holdfast.reports.text import count
from holdfast.run.harness import Harness
from holdfast.run.options import RunOptions, estranged
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment, Wanted
from holdfast.target.descriptor import NodeSpec, Target, TargetError, builtin_path, load
from holdfast.target.ready import Ready
from holdfast.target.roles import NODE, counted

# The first line of a descriptor in a file, by which it is known again.
_OURS = "# Written by holdfast serve, and removed when it ends."


def serve(key: str, options: RunOptions, *, nodes: str, descriptor: Path | None) -> int:
    builtin(key)  # says which specs there are, if this is none
    options = replace(options, violate=as_written(options.violate))
    target = estranged(load(builtin_path(key)).at_scale(options.time_scale), options.stranger)
    also = also_broken(key, options.violate) if options.violate else ()
    target = replace(target, nodes=_with_counts(target, nodes))
    return serve_target(target, violate=options.violate, also=also, descriptor=descriptor)


def serve_target(
    target: Target, *, violate: str | None = None, also: tuple[str, ...] = (), descriptor: Path | None = None
) -> int:
    """Start all nodes of a target, print a descriptor of them as they run, and wait to be stopped."""
    if descriptor:
        _refuse_others_file(descriptor)
    harness, text = Harness(target, Stream()), ""
    try:
        harness.open()
        wanted = Wanted("shared", frozenset(), {}, variant=violate or "")
        deployment = harness.lease(wanted, target, target.timings(builtin(target.spec)))
        text = "\n".join(_describe(target, deployment, harness.folder, violate, also)) + "\n"
        text += "".join(f"# {line}\n" for line in harness.call(_store_lines(deployment)))
        if descriptor:
            text = f"{_OURS}\n{text}"
            _write_at_once(descriptor, text)
            print(f"{_what(target, violate)}: holdfast run {target.spec} --target {descriptor}", flush=True)
        else:
            print(text, flush=True)
        _until_stopped()
    finally:
        if descriptor and _is_ours(descriptor) and descriptor.read_text() == text:  # not that of a later server
            descriptor.unlink()
        harness.close()
    return 0


def _what(target: Target, violate: str | None) -> str:
    broken = f", violating {violate}" if violate else ""
    return f"serving {target.spec}{broken}, {count(len(target.nodes), 'node')}"


def _is_ours(file: Path) -> bool:
    return file.is_file() and file.read_bytes().startswith(_OURS.encode())


def _refuse_others_file(file: Path) -> None:
    """Removes a descriptor that `serve` left. Raises TargetError for one written by hand, or that can't be written."""
    if _is_ours(file):
        file.unlink()  # whoever waits for this one must not take it for that
    elif not file.exists():
        refuse_folder(file.parent, f"--descriptor {file}")
    else:
        raise TargetError(f"--descriptor {file}: exists already, and is not of holdfast serve; choose another name")


def _write_at_once(file: Path, text: str) -> None:
    """Write the whole file or nothing: whoever waits for it reads it as soon as it is there."""
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    beside.write_text(text)
    beside.replace(file)


def _with_counts(target: Target, text: str) -> tuple[NodeSpec, ...]:
    """The nodes that `--nodes` asks for: `3`, or `api=2,worker=1`; all that are listed if it says nothing."""
    if not text:
        return target.nodes
    try:
        nodes = counted(target.nodes, _counts(text))
    except ValueError as error:
        raise TargetError(f"--nodes {text}: {error}") from error
    if not nodes:
        raise TargetError(f"--nodes {text}: that is no node at all")
    return nodes


def _counts(text: str) -> int | dict[str, int]:
    if text.isdecimal():
        return int(text)
    pairs = [word.partition("=") for word in text.split(",")]
    if not all(role and count.isdecimal() for role, _, count in pairs):
        raise ValueError("write a number, or one for each role, as in api=2,worker=1")
    return {role.strip(): int(count) for role, _, count in pairs}


def _describe(
    target: Target, deployment: Deployment, folder: Path, violate: str | None, also: tuple[str, ...]
) -> Iterator[str]:
    """A descriptor of the running servers, by URL: this command starts and stops them, the suite does not."""
    if also:
        yield f"# {violate} breaks these rows as well: {', '.join(also)}"
    yield "[target]"
    yield f'name = "holdfast reference{f" violating {violate}" if violate else ""}"'
    yield f'spec = "{target.spec}"'
    yield f'version = "{target.version}"'
    yield f'profile = "{"store" if deployment.store else "wire"}"'
    yield f"time_scale = {target.time_scale:g}"
    for spec, node in zip(target.nodes, deployment.nodes.values(), strict=True):
        yield f'\n[[node]]\nname = "{node.name}"'
        if spec.role != NODE:
            yield f'role = "{spec.role}"'
        if node.urls:
            yield f"urls = {_toml(node.urls)}"
        if spec.ready and spec.ready != Ready("http", "/health", {}):
            yield f"ready = {_toml(_ready(spec.ready.filled(partial(deployment.fill, node=node.name))))}"
        if spec.ready_as:
            yield f'ready_as = "{deployment.fill(spec.ready_as, node.name)}"'
        if spec.metrics:
            yield f"metrics = {_toml({'url': spec.metrics.url, 'path': spec.metrics.path})}"
    yield f"\n[credentials]\n{_table({name: _filled(deployment, value) for name, value in target.credentials.items()})}"
    yield "\n[observe]"
    if deployment.store:
        yield f'redis = "{deployment.store.url}"'
    yield from (f"{name} = {_toml(target.observe[name])}" for name in ("prefix", "metrics") if name in target.observe)
    yield f'events = "{folder}/d1-{{node}}.log"'
    if target.time_scale < 1 and target.scaled_limits:
        yield f"\n[limits]\n{_table(target.scaled_limits)}"
    yield f"\n[dialect]\n{_table({name: value for name, value in target.dialect.items() if '{' not in str(value)})}"


async def _store_lines(deployment: Deployment) -> list[str]:
    """What a descriptor has no key for: the members of a store with replicas or Sentinels."""
    store = deployment.store
    if store is None or not store.plan.is_set:
        return []
    leads = f"store: {await who_leads(store)}"
    return [leads, f"sentinels: {watched_by(store)}"] if store.sentinels else [leads]


def _filled(deployment: Deployment, value: Any) -> Any:
    """The value with its placeholders filled, except {node}, which stays for each node to fill."""
    return deployment.fill(value, "{node}") if isinstance(value, str) else value


def _ready(ready: Ready) -> str | dict[str, str]:
    if ready.kind == "http" and not ready.options:
        return ready.what
    return {ready.kind: ready.what, **ready.options}


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False)


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
