"""The limiter as seen from outside: what it owes follows from when failures were counted, which we know roughly.

A machine so slow that five failures span a window, or that a probe is answered after the lock has ended, says nothing.
"""

from collections.abc import Sequence

from holdfast.conformance.admission.wire import Answer, locked
from holdfast.finding import Inconclusive, expect
from holdfast.spectime import SpecTime


def expect_locked(T: SpecTime, failures: Sequence[Answer], probe: Answer, why: str = "") -> None:
    """429 RATE_LIMITED, since these failures, the last of which locked the user, all count."""
    if not locked().matches(probe):
        in_one_window(T, failures)
        if probe.received > failures[-1].sent + T.rate_lock:
            took = probe.received - failures[-1].sent
            raise Inconclusive(f"the probe was answered {took:.2f} s after the failure that locked: too late to tell")
    expect(probe, locked(), why=why)


def in_one_window(T: SpecTime, answers: Sequence[Answer]) -> None:
    """All of them were counted while the first had not left the window."""
    if (span := answers[-1].received - answers[0].sent) > T.rate_window:
        raise Inconclusive(f"the failures took {span:.2f} s, longer than the window of {T.rate_window:g} s")
