"""What the harness itself costs: the CPU time of checks that do nothing, on one deployment, over all processes."""

import resource
import subprocess
import sys

from holdfast.check.decisive import judged
from holdfast.check.verifies import spec_of, verifies
from holdfast.conformance.admission.client import Admission
from holdfast.run.harness import Harness
from holdfast.run.job import Job
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

CHECKS = 200


@verifies("AD-ADMIT-01")
async def does_nothing(admission: Admission) -> None:
    """Asks for the driver, as every check does, and does nothing with it but say that something was judged."""
    judged()


def cpu_per_check() -> float:
    """Returns user and system seconds per check of runner, guardian, nodes and Redis, from import to last exit."""
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
    harness = Harness(target, Stream())
    try:
        harness.open()
        verdicts = {str(outcome.verdict) for _, outcome in harness.run(jobs)}
    finally:
        harness.close()
    assert verdicts == {"pass"}, verdicts


if __name__ == "__main__":
    run()
