"""Audits what a target writes into its event log during a campaign: each thing that began has ended once.

The log is read where the harness reads it, not by the generator, which may run on another machine. Which events begin
and end something, and what they have in common, is said by the campaign.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from holdfast.load.campaign import Audit
from holdfast.load.judge import Finding
from holdfast.spec.verdict import Verdict

# Returns the records of all nodes that have this event.
Records = Callable[[str], Iterable[Mapping[str, Any]]]
_SHOWN = 3


def audited(audit: Audit, logged: Records, entries: Records | None = None, *, missing: str = "") -> Finding:
    """Returns whether each thing that began has ended exactly once, and nothing else has.

    The ends are looked for among the `entries` of a stream, if they are given. `missing` is what of the descriptor it
    would take to see them.
    """
    place = f" in {audit.stream}" if audit.stream else ""
    like = "".join(f" with {name} {pattern}" for name, pattern in audit.where.items())
    what, expected = f"events after {audit.begins}", f"exactly one of {', '.join(audit.ends)}{like}{place} for each"
    if missing:
        return Finding(
            what, Verdict.NOT_OBSERVABLE, expected, "no record of it", audit.rests_on, f"{missing} is not there"
        )
    began = {str(each.get(audit.by)) for each in _counting(audit, logged(audit.begins))}
    ends = [each for name in audit.ends for each in (entries or logged)(name)]
    ended = Counter(str(each.get(audit.by)) for each in _counting(audit, ends))
    wrong = [f"{each} ended {ended[each]} times" for each in sorted(began) if ended[each] != 1]
    wrong += [f"{each} ended and never began" for each in sorted(ended.keys() - began)]
    if not began:
        return Finding(what, Verdict.INCONCLUSIVE, expected, "no such event", audit.rests_on, "there was no such event")
    seen = f"{len(began)} began, {sum(ended.values())} ends; {len(wrong)} wrong"
    told = f"{seen}: {'; '.join(wrong[:_SHOWN])}" if wrong else seen
    return Finding(what, Verdict.FAIL if wrong else Verdict.PASS, expected, told, audit.rests_on)


def _counting(audit: Audit, records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yields the records whose fields are like the audit's patterns; a field that is not there excludes nothing."""
    for record in records:
        if all(fnmatchcase(str(record.get(name, pattern)), pattern) for name, pattern in audit.where.items()):
            yield record
