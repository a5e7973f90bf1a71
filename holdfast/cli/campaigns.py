"""Runs campaigns for `holdfast load`, shows how they go, and writes their reports.

This process starts the target, puts the faults and judges. The load comes from Locust, in processes that the guardian
starts, so that they end with this one whatever happens to it. Locust is never imported here.
"""

import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from holdfast import __version__
from holdfast.cli.load import Asked
from holdfast.load.audit import audited
from holdfast.load.campaign import Campaign, Numbers
from holdfast.load.conduct import Distribution, Hands, Work, conduct
from holdfast.load.document import Told, document
from holdfast.load.extra import LoadError
from holdfast.load.fold import Folded
from holdfast.load.judge import Finding, decide
from holdfast.load.plan import plan_of
from holdfast.load.streams import entries_of, unobservable
from holdfast.load.subjects import resolver
from holdfast.reports import load as reports
from holdfast.reports.html import SIGNS
from holdfast.run.harness import Harness
from holdfast.run.options import RunOptions
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment, Wanted
from holdfast.target.descriptor import Target

# A line of progress this often; what is behind it grows slowly.
_TELL_EVERY = 2.0


@contextmanager
def standing(target: Target, options: RunOptions) -> Iterator[Harness]:
    harness = Harness(target, Stream(), options)
    with _ended_by_signals():
        try:
            harness.open()
            yield harness
        finally:
            harness.close()


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turns the signals that ask a program to end into the same end as Ctrl-C."""

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_one(harness: Harness, each: Campaign, target: Target, options: RunOptions, asked: Asked) -> Told:
    """Runs one campaign on a deployment of its own and judges it."""
    timings = target.timings(builtin(target.spec))
    missing = {fault.needs for fault in each.faults if fault.needs} - target.capabilities()
    if missing:
        raise LoadError(f"{each.id} needs {', '.join(sorted(missing))}, which {target.name} does not offer")
    numbers, began = Numbers(each, timings, options.seed), time.monotonic()
    print(f"{each.id} {each.title}: {len(numbers.due)} arrivals in {numbers.arrivals.seconds:g} s", flush=True)
    deployment = harness.lease(_wanted(each, target, options), target, timings)
    urls = {name: dict(node.urls) for name, node in deployment.nodes.items()}
    roles = {name: node.role for name, node in deployment.nodes.items()}
    out = Path(tempfile.mkdtemp(dir=harness.folder)) / "generator.jsonl"
    plan = plan_of(each, target, timings, urls, out, seed=options.seed, fill=deployment.fill)
    work = Work(each, numbers, plan, Distribution(asked.processes, asked.master, asked.bind_host, asked.port))
    hands = Hands(harness.spawner(f"load-{each.id}"), deployment.fault_plane, _Progress(numbers), resolver(plan, roles))
    folded, windows = harness.call(conduct(work, hands))
    judgement = decide(each, numbers, folded, windows, _audits(each, harness, deployment))
    told = Told(each, numbers, folded, windows, judgement, time.monotonic() - began)
    _tell(told)
    harness.call(harness.give_back(deployment))
    return told


def _audits(each: Campaign, harness: Harness, deployment: Deployment) -> list[Finding]:
    """Looks into the event logs of the nodes, and into streams of their store where an audit names one."""
    nodes = deployment.nodes.values()

    def logged(event: str) -> list[dict[str, Any]]:
        return [record for node in nodes for record in node.events(event=event)]

    found = []
    for audit in each.audits:
        entries = harness.call(entries_of(audit, deployment))
        found.append(audited(audit, logged, entries, missing=unobservable(audit, deployment)))
    return found


def _wanted(each: Campaign, target: Target, options: RunOptions) -> Wanted:
    """Every node that the descriptor lists, and links where a fault of the campaign needs them."""
    needs = frozenset(fault.needs for fault in each.faults if fault.needs)
    nodes = {role: each.nodes_of(role, target.count(role)) for role in target.roles}
    settings = each.settings_for(target.dialect)
    return Wanted("disruptive", needs, settings, nodes=nodes, variant=options.violate or "")


class _Progress:
    """Prints a line now and then: the rate asked for and reached, percentiles so far, what is left."""

    def __init__(self, numbers: Numbers) -> None:
        self._numbers = numbers
        self._next = 0.0

    def __call__(self, folded: Folded, passed: float, faults: int) -> None:
        if passed < self._next or not folded.names:
            return
        self._next = passed + _TELL_EVERY
        name = max(folded.names, key=lambda each: sum(folded.outcomes(each).values()))
        found = folded.latencies(name)
        due = sum(each <= passed for each in self._numbers.due)
        print(
            f"  {passed:5.1f} s  asked {due}, ended {folded.counts.ended}, late {folded.counts.late}, "
            f"shed {folded.counts.shed}  {name} P50 {_ms(found.at(0.5))} P95 {_ms(found.at(0.95))} "
            f"P99 {_ms(found.at(0.99))}  {self._left(passed, faults)}",
            flush=True,
        )

    def _left(self, passed: float, faults: int) -> str:
        if any(each.quantile < 1 for each in self._numbers.campaign.recoveries):
            return f"{faults} trials, until it is proven"
        return f"{max(0.0, self._numbers.arrivals.seconds - passed):.0f} s left"


def _ms(seconds: float) -> str:
    return f"{1000 * seconds:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def _tell(told: Told) -> None:
    for finding in told.judgement.findings:
        print(f"  {SIGNS[finding.verdict]} {finding.verdict}  {finding.what}: {finding.expected}; seen {finding.seen}")
        if finding.reason:
            print(f"      {finding.reason}")
    for name in told.folded.names:
        ours, theirs = told.folded.latencies(name), told.folded.locust.get(name, {})
        beside = f"; Locust shows {_ms(theirs['p95'])}" if theirs else ""
        print(f"  {name}: P50 {_ms(ours.at(0.5))}, P95 {_ms(ours.at(0.95))}, longest {_ms(ours.at(1))}{beside}")
    print(f"  {_generator(told.folded)}")
    print(f"{told.campaign.id} {told.judgement.verdict}  {told.judgement.reason}".rstrip(), flush=True)


def _generator(folded: Folded) -> str:
    """Returns what making the load cost: memory at the start, at most and at the end shows whether it grew."""
    workers = [worker for worker in folded.workers.values() if worker.rss_mb]
    if not workers:
        return "generator: nothing was heard of it"
    first, last = (sum(worker.rss_mb[at] for worker in workers) for at in (0, -1))
    busiest = max(worker.cpu for worker in workers)
    return (
        f"generator: {len(workers)} workers, memory {first:.0f} MB at the start and {last:.0f} MB at the end, "
        f"processor {100 * busiest:.0f} % at most, {folded.counts.late} late and {folded.counts.shed} shed "
        f"of {folded.counts.starts}, {len(folded.operations)} operations in the history"
    )


def report(told: Sequence[Told], target: Target, options: RunOptions, started: str) -> int:
    identity = {
        "holdfast": __version__,
        "spec": target.spec,
        "target": {"name": target.name, "version": target.version},
        "time_scale": target.time_scale,
        "seed": options.seed,
        "command": f"holdfast {shlex.join(sys.argv[1:])}",
        "started": started,
    }
    made = document(told, identity)
    folder = options.results or Path()
    reports.write(made, folder)
    print(f"wrote load.json, load.html, junit.xml and allure-results to {folder}; exit {made['exit']}")
    return int(made["exit"])
