"""Known failures: listed in the descriptor with a reason and an expiry, so that a run stays green without lying."""

import datetime as dt
from typing import Any

from holdfast.check import CheckSpec
from holdfast.perform import Outcome
from holdfast.target import KnownFailure, Target
from holdfast.verdict import Verdict

_EXCUSABLE = frozenset({Verdict.FAIL, Verdict.WARN})


def listed(spec: CheckSpec, target: Target) -> KnownFailure | None:
    for claim in spec.claims:
        for entry in target.known_failures:
            if entry.id == claim.id and entry.part in (None, claim.part):
                return entry
    return None


def excuse(outcome: Outcome, entry: KnownFailure | None, today: dt.date) -> Outcome:
    """A listed failure is `known` until its entry expires; from then on it is red again."""
    if entry is None or outcome.verdict not in _EXCUSABLE:
        return outcome
    if entry.expired(today):
        outcome.reason = f"{outcome.reason} (known failure, but its entry expired on {entry.expires})"
    else:
        outcome.verdict, outcome.reason = Verdict.KNOWN, f"{entry.reason}: {outcome.reason}"
    return outcome


def entry_fields(entry: KnownFailure | None) -> dict[str, Any] | None:
    if entry is None:
        return None
    return {"reason": entry.reason, "link": entry.link, "expires": str(entry.expires) if entry.expires else None}
