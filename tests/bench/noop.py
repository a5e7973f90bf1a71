"""What the harness itself costs: the CPU of checks that do nothing, on one deployment, all processes counted."""

import resource
import subprocess
import sys

from holdfast.catalogue import builtin
from holdfast.check import spec_of, verifies
from holdfast.conformance.admission.client import Admission
from holdfast.scheduler import Job, overlap_for
from holdfast.stream import Stream
from holdfast.target import builtin_path, load
from holdfast.wiring import Engine, EngineOptions

CHECKS = 200


@verifies("AD-ADMIT-01")
async def does_nothing(admission: Admission) -> None:
    """It asks for the driver, as every check does."""


def cpu_per_check() -> float:
    """User and system seconds of the runner, its guardian, the nodes and Redis, from first import to last exit."""
    before = _cpu()
    subprocess.run([sys.executable, "-m", "tests.bench.noop"], check=True)
    return (_cpu() - before) / CHECKS


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run() -> None:
    target = load(builtin_path("admission"))
    catalogue, spec = builtin(target.spec), spec_of(does_nothing)
    assert spec is not None
    jobs = [Job(f"bench::{number}", spec, target, catalogue, target.timings(catalogue)) for number in range(CHECKS)]
    engine = Engine(target, Stream(None), EngineOptions(overlap=overlap_for(target.time_scale)))
    try:
        engine.open()
        verdicts = {str(outcome.verdict) for _, outcome in engine.run(jobs)}
    finally:
        engine.close()
    assert verdicts == {"pass"}, verdicts


if __name__ == "__main__":
    run()
