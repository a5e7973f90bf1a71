"""Violations of the row that wants exactly what is stale removed, once."""

from holdfast.reference.admission.mutants.split import Split
from holdfast.reference.admission.mutants.stale import REAPED
from holdfast.reference.admission.mutants.table import violates, violation

# The count is the size of the set, minus one for each janitor that found the session removed and counted down too.
violation(
    "AD-STALE-04",
    1,
    "Every janitor decrements, so the count falls too low and oversells.",
    lua={
        "active_count": """
return redis.call('SCARD', slots_key(instanceId)) - tonumber(redis.call('GET', key('excess', instanceId)) or 0)""",
        "expired_graces": """
write('SADD', limits.prefix .. 'janitors', limits.node)
return redis.call('ZRANGEBYSCORE', grace_key(), '-inf', milliseconds(facts))""",
        "reaped": f"""
end_session(session, reason, now_ms)
write('INCRBY', key('excess', session.instanceId), redis.call('SCARD', limits.prefix .. 'janitors') - 1)
{REAPED}""",
    },
)


@violates("AD-STALE-04", 2, "The janitor lists expired sessions and removes them later without re-check.")
class ListedThenRemoved(Split):
    split = ("reap",)
    between = 0.001
    """What a call to a Redis on another machine takes; without it, many removals end before another node can act."""


violation(
    "AD-STALE-04",
    3,
    "Queue entries without a session are treated as orphans and deleted.",
    lua={
        "expired_graces": """
for _, instanceId in ipairs(redis.call('SMEMBERS', limits.prefix .. 'instances')) do
  for _, characterId in ipairs(redis.call('ZRANGE', queue_key(instanceId), 0, -1)) do
    local entry = {characterId = characterId, instanceId = instanceId}
    if not session_of(entry) then
      remove_entry(entry)
    end
  end
end
return redis.call('ZRANGEBYSCORE', grace_key(), '-inf', milliseconds(facts))"""
    },
)
