"""`holdfast load`: runs campaigns against a target and judges them.

What is heavy, and what a plain install lacks, is in `holdfast.cli.campaigns` and imported once it is known to be there.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NoReturn

from holdfast.cli.violations import refuse_violation
from holdfast.load.campaign import Campaign, campaign, campaigns
from holdfast.load.extra import LoadError, generator, require_locust
from holdfast.run.options import RunOptions
from holdfast.target.preflight import not_there

if TYPE_CHECKING:
    from holdfast.load.document import Told


@dataclass(frozen=True)
class Asked:
    """What the command line says beyond the options that other commands have too."""

    campaigns: tuple[str, ...] = ()
    processes: int = 1
    master: bool = False
    bind_host: str = "127.0.0.1"
    port: int = 5557
    trials: int | None = None

    def limited(self, each: Campaign) -> Campaign:
        """Returns the campaign with no more faults of each kind than there are to be trials."""
        most = self.trials
        return each if most is None else replace(each, faults=tuple(f.at_most(most) for f in each.faults))


def listed(key: str) -> str:
    """Returns the campaigns of a spec for people: what each does and what it decides."""
    return "\n".join(line for each in campaigns(key).values() for line in _about(each))


def _about(each: Campaign) -> Iterator[str]:
    yield f"{each.id}  {each.title}{'  (headline)' if each.headline else '  (long)' if each.long else ''}"
    yield f"    {each.story}"
    parts = (
        ("budgets", each.budgets),
        ("exact counts", each.counts),
        ("recoveries", each.recoveries),
        ("audits", each.audits),
    )
    judged = [f"{len(found)} {name}" for name, found in parts if found]
    yield f"    judges {', '.join([*judged, *(f'rule: {rule}' for rule in each.rules)])}"
    for fault in each.faults:
        yield f"    fault: {fault.kind} {fault.subject} at {fault.at} for {fault.lasts}"


def work_for(key: str, host: str, port: int) -> NoReturn:
    """Becomes a worker of a master elsewhere."""
    require_locust()
    campaigns(key)  # says which specs have some, if this one has none
    words = generator(key, ["--worker", "--master-host", host, "--master-port", str(port)])
    os.execv(words[0], words)  # noqa: S606 - the words are ours


def load(key: str, options: RunOptions, asked: Asked) -> int:
    """Runs the campaigns that were asked for, or all that are no headlines; returns the exit code of their verdicts."""
    require_locust()
    from holdfast.cli.campaigns import report, run_one, standing

    known = campaigns(key)
    chosen = [campaign(key, name) for name in asked.campaigns] or [each for each in known.values() if not each.long]
    target = options.read_target(key)
    if target.spec != key:
        raise LoadError(f"{target.name} is a target of {target.spec}, not of {key}")
    refuse_violation(target, options.violate)
    if missing := not_there(target):
        raise LoadError(missing)
    started = datetime.now(UTC).isoformat(timespec="seconds")
    told: list[Told] = []
    try:
        with standing(target, options) as harness:
            for each in chosen:
                told += [run_one(harness, asked.limited(each), target, options, asked)]
    except KeyboardInterrupt:
        print(f"interrupted: {len(told)} of {len(chosen)} campaigns have ended", flush=True)
    code = report(told, target, options, started) if told else 2
    return code if len(told) == len(chosen) else max(code, 2)
