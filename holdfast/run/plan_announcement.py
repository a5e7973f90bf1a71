"""The first event of a run: what is tested, by what, with which options."""

import datetime as dt
import platform
import re
import shlex
import sys
import uuid

from holdfast import __version__
from holdfast.run.events import Purpose, RunStarted, TargetFacts, TimingInForce
from holdfast.run.options import RunOptions
from holdfast.spec.catalogue import Catalogue
from holdfast.spec.timings import Timings
from holdfast.target.descriptor import Target, builtin_path

_PASSWORD = re.compile(r"(\w+://[^:/@\s]*:)[^@/\s]+@")


def run_started(
    options: RunOptions, target: Target, catalogue: Catalogue, timings: Timings, purpose: Purpose
) -> RunStarted:
    return RunStarted(
        purpose=purpose,
        holdfast=__version__,
        run_id=str(uuid.uuid4()),
        specs=[target.spec],
        catalogue={target.spec: catalogue.version},
        target=TargetFacts(
            target.name,
            target.version,
            target.spec,
            foreign_file(target),
            {role: target.count(role) for role in target.roles},
        ),
        profile=target.profile,
        capabilities=sorted(target.capabilities() & target.in_profile()),
        time_scale=target.time_scale,
        seed=options.seed,
        launcher=options.launcher,
        engine=options.engine if options.scenarios else None,
        repeat=options.repeat,
        stress=options.stress,
        python=platform.python_version(),
        platform=platform.platform(terse=True),
        started=dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        command=shlex.join(["holdfast", *map(without_password, sys.argv[1:])]),
        timings={
            name: TimingInForce(scaled.kind, scaled.spec_seconds, scaled.seconds, scaled.source)
            for name, scaled in timings.all().items()
        },
    )


def foreign_file(target: Target) -> str | None:
    """The descriptor's path, unless it is a built-in one, which is found by the spec's key."""
    return str(target.file) if target.file and target.file != builtin_path(target.spec) else None


def without_password(word: str) -> str:
    """A word of a command line as it may stand in a report: the password of a URL is left out."""
    return _PASSWORD.sub(r"\1…@", word)
