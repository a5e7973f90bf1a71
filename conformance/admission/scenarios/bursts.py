"""Makes many calls at once, with a receipt that they really were in flight together."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from holdfast.check.faults import Faults
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.wire import Answer
from holdfast.target.fault import Receipt

Call = Callable[[], Coroutine[Any, Any, Answer]]
# If a smaller share was ever in flight together, it was a sequence of single calls and no burst.
TOGETHER = 0.25


async def burst(
    admission: Admission, faults: Faults, calls: Sequence[Call], subject: str, nodes: Sequence[str] = ()
) -> list[Answer]:
    """Makes all calls at once over open connections; returns the answers in order. Raises Inconclusive if no burst."""
    async with faults.stimulus(f"{len(calls)} at once", subject) as window:
        answers = await admission.burst(calls, nodes=nodes, at_once=len(calls))
        most = _most_in_flight(answers)
        receipt = Receipt(f"{most} of {len(calls)} were in flight together", most >= TOGETHER * len(calls))
        window.receipts.append(receipt)
    return answers


def _most_in_flight(answers: Sequence[Answer]) -> int:
    moments = sorted([(answer.sent, 1) for answer in answers] + [(answer.received, -1) for answer in answers])
    now = most = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most
