"""The jobs of a planned run, each with the command that repeats it."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.check.verifies import CheckSpec
from holdfast.run.job import Job
from holdfast.run.options import RunOptions
from holdfast.run.options import options as known
from holdfast.run.plan import Plan
from holdfast.run.plan_announcement import foreign_file, without_password
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.descriptor import Target

_SCENARIO = re.compile(r"test_([a-z]+)0*(\d+)_")
# Attempts and repeats of one seed draw their own numbers below this.
SEEDS_APART = 1000
# Options that a repeated check needs too, by command.
CARRIED = {
    "run": ("seed", "profile", "launcher", "redis_url", "time_scale", "stranger"),
    "chaos": ("seed", "launcher", "time_scale", "stranger"),
    "walk": ("seed", "profile", "launcher", "redis_url", "time_scale", "violate", "against"),
}


def jobs_of(
    plan: Plan,
    params: Mapping[str, Mapping[str, Any]],
    options: RunOptions,
    target: Target,
    catalogue: Catalogue,
    timings: Timings,
) -> list[Job]:
    """Every planned check once for each repeat; `params` are what pytest parametrized, by check."""
    return [
        Job(
            check=id_,
            spec=spec,
            target=target,
            catalogue=catalogue,
            timings=timings,
            params=params.get(id_, {}),
            repeat=repeat,
            seed=options.seed * SEEDS_APART + repeat,
            command=repeat_command(spec, options, target),
            walk_order=options.walk_order if spec.walks else None,
            against=options.read_against(target) if spec.walks else None,
        )
        for repeat in range(1, options.repeat + 1)
        for id_, spec in plan.checks.items()
    ]


def repeat_command(spec: CheckSpec, options: RunOptions, target: Target) -> str:
    """The command line that runs this check again as it was run."""
    if spec.walks:
        command, words = "walk", _which_walk(options)
    elif options.scenarios:
        command, words = "chaos", [*_which_scenario(spec, options), "--engine", options.engine]
    else:
        command, words = "run", ["--only", ",".join(dict.fromkeys(claim.id for claim in spec.claims))]
    if file := foreign_file(target):
        words += ["--target", file]
    return shlex.join(["holdfast", command, target.spec, *words, *_carried(command, options)])


def _carried(command: str, options: RunOptions) -> Iterator[str]:
    """What the user asked for besides, as far as it changes how a check goes."""
    for name in CARRIED[command]:
        option, value = known()[name], getattr(options, name)
        if value != option.default or name == "seed":  # the seed is told in any case: it repeats the draws
            yield from (option.spelling, without_password(f"{value:g}" if isinstance(value, float) else str(value)))


def _which_walk(options: RunOptions) -> list[str]:
    """A walk is drawn again from its seed; its finding is repeated exactly by the file that the report has."""
    if options.replay:
        return ["--replay", str(options.replay)]
    return ["--for", options.for_] if options.for_ else []


def _which_scenario(spec: CheckSpec, options: RunOptions) -> list[str]:
    """`C3` of test_c03_…; a storm is found again by how many were drawn, or by its schedule."""
    if named := _SCENARIO.match(spec.function.__name__):
        return [named[1].upper() + named[2]]
    if options.schedule:
        return ["--schedule", str(options.schedule)]
    return ["--random", str(options.random)]
