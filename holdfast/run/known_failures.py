"""Known failures: listed in the descriptor with a reason and an expiry, so that a run stays green without lying."""

import datetime as dt
from collections.abc import Collection
from dataclasses import replace

from holdfast.check.verifies import CheckSpec
from holdfast.run.events import KnownEntry
from holdfast.run.perform import Outcome
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import KnownFailure, Target

_EXCUSABLE = frozenset({Verdict.FAIL, Verdict.WARN})


def listed(spec: CheckSpec, target: Target, decided: Collection[str] | None = None) -> KnownFailure | None:
    """Returns the entry that a check falls under: of all rows that it verifies, or of those that it `decided`."""
    for claim in (claim for claim in spec.claims if decided is None or claim.id in decided):
        for entry in target.known_failures:
            if entry.id == claim.id and entry.part in (None, claim.part):
                return entry
    return None


def excuse(outcome: Outcome, entry: KnownFailure | None, today: dt.date) -> Outcome:
    """A listed failure is `known` until its entry expires; from then on it is red again."""
    if entry is None or outcome.verdict not in _EXCUSABLE:
        return outcome
    if entry.expired(today):
        return replace(outcome, reason=f"{outcome.reason} (known failure, but its entry expired on {entry.expires})")
    return replace(outcome, verdict=Verdict.KNOWN, reason=f"{entry.reason}: {outcome.reason}")


def reported(entry: KnownFailure | None) -> KnownEntry | None:
    if entry is None:
        return None
    return KnownEntry(entry.reason, entry.link, str(entry.expires) if entry.expires else None)
