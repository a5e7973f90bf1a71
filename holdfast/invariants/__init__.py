"""Rules over a history of many clients. Each is a function: history in, `holds`, `violated` or `ran-out` out.

All but `linearizable` sort and sweep, O(n log n) in the number of operations; `linearizable` searches within limits.
What each takes for a contradiction, and why that is exact, stands beside it.
"""

from holdfast.invariants.holder import at_most, one_holder
from holdfast.invariants.items import exactly_once, nothing_lost
from holdfast.invariants.linear import Lock, Model, Register, linearizable
from holdfast.invariants.order import monotonic_tokens, one_leader_per_term
from holdfast.invariants.queue import fifo
from holdfast.invariants.register import atomic_register
from holdfast.invariants.result import Judged, Limit, Result, require

__all__ = [
    "Judged",
    "Limit",
    "Lock",
    "Model",
    "Register",
    "Result",
    "at_most",
    "atomic_register",
    "exactly_once",
    "fifo",
    "linearizable",
    "monotonic_tokens",
    "nothing_lost",
    "one_holder",
    "one_leader_per_term",
    "require",
]
