"""The rules that a campaign checks by exact count over its whole history, each by an invariant of the kernel.

Users record what their spec's rules are about (`connect`, `leave`, `enqueue`, `serve`, …); a rule here says which
invariant judges which of these operations, and by which of its fields they belong together.
"""

from collections.abc import Callable, Iterator, Mapping

from holdfast.check.history import History, Operation
from holdfast.check.invariants import (
    Limit,
    Result,
    at_most,
    exactly_once,
    fifo,
    monotonic_tokens,
    nothing_lost,
    one_holder,
    one_leader_per_term,
)

# A campaign may have millions of operations; the kernel's own limit is meant for checks.
LIMIT = Limit(operations=5_000_000, seconds=120.0)

Rule = Callable[[History, Mapping[str, float]], Result]


def capacity(history: History, numbers: Mapping[str, float]) -> Result:
    """No instance ever has more sessions than it has room for."""
    return at_most(history, int(numbers["capacity"]), acquire="connect", release="leave", limit=LIMIT)


def one_session(history: History, _numbers: Mapping[str, float]) -> Result:
    """No character ever has two sessions."""
    return one_holder(History.of(_by_character(history)), acquire="connect", release="leave", limit=LIMIT)


def _by_character(history: History) -> Iterator[Operation]:
    """Yields connects and leaves with the character as what is held, and the session as who holds it."""
    for operation in history:
        if operation.what in ("connect", "leave"):
            session = str(operation.value if operation.what == "connect" else operation.argument)
            # An attempt without an answer may have made a session that nobody knows; a leave is always of one that is.
            known = operation.ok or operation.what == "leave"
            yield operation._replace(key=operation.client, client=session if known else "nobody", argument=None)


def queue_order(history: History, _numbers: Mapping[str, float]) -> Result:
    """Whoever waits longest is let in first."""
    return fifo(history, arrive="enqueue", serve="serve", leave="unqueue", limit=LIMIT)


def nobody_lost(history: History, _numbers: Mapping[str, float]) -> Result:
    """Whoever was told to wait was let in or waits still."""
    return nothing_lost(history, put="enqueue", found=("serve", "waits", "unqueue"), limit=LIMIT)


def decided_once(history: History, _numbers: Mapping[str, float]) -> Result:
    """Each decision that was acknowledged is there, and there is no other one."""
    return exactly_once(history, submit="decide", effect="applied", limit=LIMIT)


def terms_grow(history: History, _numbers: Mapping[str, float]) -> Result:
    """A node never shows an older term than it has shown before."""
    return monotonic_tokens(history, grant="leader", where="argument", repeats=True, limit=LIMIT)


def one_leader(history: History, _numbers: Mapping[str, float]) -> Result:
    """No term has two leaders, whichever node is asked."""
    everywhere = (
        operation._replace(key="", argument=operation.value, value=operation.argument)
        for operation in history
        if operation.what == "leader"
    )
    return one_leader_per_term(History.of(everywhere), lead="leader", limit=LIMIT)


def fence(history: History, _numbers: Mapping[str, float]) -> Result:
    """Nothing is applied under a term after something was applied under a greater one."""
    return monotonic_tokens(history, grant="apply", where="argument", repeats=True, limit=LIMIT)


def one_session_an_intent(history: History, _numbers: Mapping[str, float]) -> Result:
    """No intent ever has two sessions that live at the same time, whichever node is asked."""
    by_intent = (each._replace(key=f"{each.key} {each.argument}") for each in history if each.what in ("start", "stop"))
    return one_holder(History.of(by_intent), acquire="start", release="stop", limit=LIMIT)


def one_session_a_channel(history: History, _numbers: Mapping[str, float]) -> Result:
    """No channel ever has two sessions that run."""
    return one_holder(history, acquire="run", release="stop", limit=LIMIT)


def slots(history: History, numbers: Mapping[str, float]) -> Result:
    """Never more sessions run than there are tuner slots."""
    everywhere = (each._replace(key="the tuners") for each in history if each.what in ("run", "stop"))
    return at_most(History.of(everywhere), int(numbers["slots"]), acquire="run", release="stop", limit=LIMIT)


RULES: Mapping[str, Rule] = {
    "capacity": capacity,
    "one session": one_session,
    "first in, first out": queue_order,
    "nobody lost": nobody_lost,
    "decided once": decided_once,
    "terms grow": terms_grow,
    "one leader a term": one_leader,
    "fence": fence,
    "one session an intent": one_session_an_intent,
    "one session a channel": one_session_a_channel,
    "slots": slots,
}
