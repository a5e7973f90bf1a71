"""Rules over a history of many clients. Each takes a history and returns `holds`, `violated` or `ran-out`.

All but `linearizable` sort and sweep, O(n log n) in the number of operations; `linearizable` searches within limits.
Each rule is exact: it says `violated` if, and only if, no legal run of the service could have produced the history. The
docstring of each function says what a contradiction is and why looking for it is enough; tests/kernel compares each
with a search through all possible runs of small histories. Keys are judged one by one, and the first contradiction ends
the judgement with the few operations that prove it.
"""

from holdfast.check.invariants.holder import at_most, one_holder
from holdfast.check.invariants.items import exactly_once, nothing_lost
from holdfast.check.invariants.linear import Lock, Model, Register, linearizable
from holdfast.check.invariants.order import monotonic_tokens, one_leader_per_term
from holdfast.check.invariants.queue import fifo
from holdfast.check.invariants.register import atomic_register
from holdfast.check.invariants.result import Judged, Limit, Result, require

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
