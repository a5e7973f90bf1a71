"""Writes the steps, transcript and times of a check into the record that allure-pytest keeps of its item.

allure-pytest notes steps per thread and by wall clock while a test runs. Checks overlap on one loop and have ended when
pytest comes to their items, so what they noted themselves is put into that record afterwards.
"""

from collections.abc import Sequence

import allure
from allure_commons.model2 import Label, Status, TestResult, TestStepResult
from allure_pytest.listener import AllureListener

from holdfast.run.perform import Outcome
from holdfast.spec.verdict import Verdict

_UNDECIDED = (Verdict.ERROR, Verdict.INCONCLUSIVE)


def add_steps(listener: AllureListener, outcome: Outcome, requirements: Sequence[str], started: float) -> None:
    """`started` is the start of the check in seconds since the epoch."""
    test: TestResult = listener.allure_logger.get_test(None)
    test.start, test.stop = _ms(started), _ms(started + outcome.duration)
    if outcome.verdict in _UNDECIDED:
        test.status = Status.BROKEN
    test.labels.append(Label(name="verdict", value=str(outcome.verdict)))
    test.labels += [Label(name="requirement", value=id_) for id_ in requirements]
    test.steps += [
        TestStepResult(
            name=step.name,
            status=step.status,
            start=_ms(started + step.start_ms / 1000),
            stop=_ms(started + step.stop_ms / 1000),
        )
        for step in outcome.evidence.steps
    ]
    allure.attach("\n".join(outcome.evidence.transcript_lines()), "transcript", allure.attachment_type.TEXT)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
