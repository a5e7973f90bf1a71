"""Audits what a target writes into its event log during a campaign: each thing that began has ended once.

The log is read where the harness reads it, not by the generator, which may run on another machine. Which events begin
and end something, and what they have in common, is said by the campaign.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from holdfast.load.campaign import Audit
from holdfast.load.judge import Finding
from holdfast.spec.verdict import Verdict

# Returns the records of all nodes that have this event.
Records = Callable[[str], Iterable[Mapping[str, Any]]]
_SHOWN = 3


def audited(audit: Audit, records: Records, *, observable: bool) -> Finding:
    """Returns whether each thing that began has ended exactly once, and nothing else has."""
    what, expected = f"events after {audit.begins}", f"exactly one of {', '.join(audit.ends)} for each"
    if not observable:
        return Finding(
            what, Verdict.NOT_OBSERVABLE, expected, "no event log", audit.rests_on, "[observe] events is not there"
        )
    began = {str(each.get(audit.by)) for each in records(audit.begins)}
    ended = Counter(str(each.get(audit.by)) for name in audit.ends for each in records(name))
    wrong = [f"{each} ended {ended[each]} times" for each in sorted(began) if ended[each] != 1]
    wrong += [f"{each} ended and never began" for each in sorted(ended.keys() - began)]
    if not began:
        return Finding(what, Verdict.INCONCLUSIVE, expected, "no such event", audit.rests_on, "there was no such event")
    seen = f"{len(began)} began, {sum(ended.values())} ends; {len(wrong)} wrong"
    told = f"{seen}: {'; '.join(wrong[:_SHOWN])}" if wrong else seen
    return Finding(what, Verdict.FAIL if wrong else Verdict.PASS, expected, told, audit.rests_on)
