"""Performs one attempt of a check that a test has made up, without a target."""

from typing import cast

from holdfast.check.answer_timeout import AnswerTimeout
from holdfast.check.audit import Audit
from holdfast.check.verifies import CheckSpec, Claim
from holdfast.run.job import Job
from holdfast.run.perform import Outcome, Surroundings, perform
from holdfast.spec.catalogue import builtin
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import builtin_path, load


class Calm:
    """Its processes get their processor at once."""

    def run_queue_wait(self) -> float:
        return 0.0

    async def trouble(self) -> str:
        return ""

    def obituaries(self) -> list[str]:
        return []


async def outcome_of(check: object, deployment: object, audit: Audit, row: str = "TC-LOOP-01") -> Outcome:
    """Returns what comes of the check as one that verifies this row of lockd."""
    target, catalogue = load(builtin_path("lockd")), builtin("lockd")
    spec = CheckSpec(check, [Claim(row, 1)], waits="0")  # type: ignore[arg-type]  # a function of the test
    job = Job("check", spec, target, catalogue, target.timings(catalogue), seed=1)
    around = Surroundings(
        cast("Deployment", deployment), _no_other, audit, AnswerTimeout(), lambda _what, _seconds: None
    )
    return await perform(job, 1, around)


async def _no_other() -> Deployment:
    raise AssertionError("one deployment is enough here")
