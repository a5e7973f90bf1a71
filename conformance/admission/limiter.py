"""Judges the limiter from outside, where the times at which failures were counted are known only as intervals.

If the machine is so slow that five failures may not fit into one window, or that a probe may be answered after the lock
has ended, nothing can be concluded.
"""

from collections.abc import Sequence

from holdfast.check.finding import Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.conformance.admission.wire import Answer, locked


def expect_locked(T: SpecTime, failures: Sequence[Answer], probe: Answer, why: str = "") -> None:
    """Raises Finding unless the probe is 429 RATE_LIMITED after these failures, the last of which locked the user."""
    if not locked().matches(probe):
        in_one_window(T, failures)
        if probe.received > failures[-1].sent + T.rate_lock:
            took = probe.received - failures[-1].sent
            raise Inconclusive(
                f"the probe was answered {took:.2f} s after the failure that locked, when the lock may have ended"
            )
    expect(probe, locked(), why=why)


def owner_of_count(answer: Answer, row: str) -> str:
    """Returns who judges the failures left: this row, or the one that demands that they be told at all."""
    return "AD-RATE-02" if answer.remaining is None else row


def same_hint(answer: Answer) -> bool:
    """Whether header and body agree on when to try again; a header that names a date is told in whole seconds."""
    header, body = answer.retry_header, answer.retry_after
    if header is None or not isinstance(body, int | float):
        return False
    return header == body or (not answer.headers["Retry-After"].isdigit() and abs(header - body) <= 1)


def in_one_window(T: SpecTime, answers: Sequence[Answer]) -> None:
    """Raises Inconclusive unless all of them were counted before the first can have left the window."""
    if (span := answers[-1].received - answers[0].sent) > T.rate_window:
        raise Inconclusive(f"the failures took {span:.2f} s, longer than the window of {T.rate_window:g} s")
