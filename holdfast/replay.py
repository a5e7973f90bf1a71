"""A check told again to allure-pytest, once pytest comes to its item.

The plugin keeps its steps per thread and by wall clock, while checks overlap on one loop and have ended by then. So the
steps, the transcript and the times go into the plugin's own record of the test.
"""

from collections.abc import Sequence

import allure
from allure_commons.model2 import Label, Status, TestResult, TestStepResult
from allure_pytest.listener import AllureListener

from holdfast.perform import Outcome
from holdfast.verdict import Verdict

_UNDECIDED = (Verdict.ERROR, Verdict.INCONCLUSIVE)


def replay(listener: AllureListener, outcome: Outcome, requirements: Sequence[str], started: float) -> None:
    """`started` is the start of the check in seconds since the epoch."""
    test: TestResult = listener.allure_logger.get_test(None)
    test.start, test.stop = _ms(started), _ms(started + outcome.duration)
    if outcome.verdict in _UNDECIDED:
        test.status = Status.BROKEN
    test.labels.append(Label(name="verdict", value=str(outcome.verdict)))
    test.labels += [Label(name="requirement", value=id_) for id_ in requirements]
    test.steps += [
        TestStepResult(
            name=step["name"],
            status=step["status"],
            start=_ms(started + step["start_ms"] / 1000),
            stop=_ms(started + step["stop_ms"] / 1000),
        )
        for step in outcome.steps
    ]
    allure.attach("\n".join(outcome.transcript_lines()), "transcript", allure.attachment_type.TEXT)


def _ms(seconds: float) -> int:
    return round(seconds * 1000)
