"""Judgements in sentences: what was expected and what was seen, in words that a stranger can read.

A bare `assert` would print Python objects into a finding, so checks use these, or `expect` for values that describe
themselves.
"""

from collections.abc import Iterable

from holdfast.check.finding import demand
from holdfast.conformance.lockd.wire import Leader
from holdfast.conformance.shared.stub import Call


def demand_none(calls: Iterable[Call], expected: str, why: str = "") -> None:
    """Raises Finding that shows the calls, if there are any."""
    found = list(calls)
    demand(not found, expected, told(found), why)


def told(calls: Iterable[Call]) -> str:
    """Returns calls as a finding shows them."""
    return "; ".join(call.describe() for call in calls) or "no such call"


def shown(leader: Leader | None) -> str:
    return leader.describe() if leader else "no valid leader"


def same_leader(seen: Leader | None, wanted: Leader, why: str) -> None:
    """Raises Finding unless this is the wanted leader in the wanted term; its lease may have another end."""
    held = seen is not None and (seen.id, seen.term) == (wanted.id, wanted.term)
    demand(held, f"leader {wanted.id} in term {wanted.term}", shown(seen), why)


def names(endpoints: Iterable[str]) -> str:
    """Returns a list of endpoints, or of other names, as a finding shows it."""
    return ", ".join(endpoints) or "an empty list"
