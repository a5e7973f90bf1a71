"""Mutants that are broken by as much as one says: `--violate graded:deadline:11`.

They measure campaigns: how little too late, or how rarely wrong, a server may be and still be found.
"""

from collections.abc import Mapping
from time import monotonic

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.mutants.table import graded
from holdfast.reference.admission.verdicts import Verdict
from holdfast.reference.shared.redislink import RedisAway


@graded("deadline")
def deadline(seconds: float) -> type[Attempts]:
    """An attempt that can't be decided is answered after so many seconds."""

    class Late(Attempts):
        def deadline_of(self, received: float) -> float:
            return received + seconds

    return Late


@graded("recovery")
def recovery(seconds: float) -> type[Attempts]:
    """A client gets its session back so many seconds after it first asked for it, and not sooner."""

    class Slow(Attempts):
        async def decide(self, attempt: Attempt) -> Verdict:
            first = _ASKED.setdefault(attempt.reconnection_token or "", monotonic())
            if attempt.reconnection_token and monotonic() - first < seconds:
                raise RedisAway("It is not yet time.")
            return await super().decide(attempt)

    return Slow


# When each token was first presented to this node.
_ASKED: dict[str, float] = {}


@graded("oversell")
def oversell(times: float) -> Mapping[str, str]:
    """Once in so many attempts a newcomer is let in without a look at whether there is room."""
    return {
        "may_enter": f"""
  if redis.call('INCR', 'graded:attempts') % {times:.0f} == 0 then return true end
  return has_room(facts.instanceId) and depth_of(facts.instanceId) == 0"""
    }
