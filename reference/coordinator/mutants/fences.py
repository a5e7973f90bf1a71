"""Lua bodies that take a fence of the store away, for mutants whose process breaks the rule that it guards."""

UNFENCED = {"leads": "return true"}
"""Leader work is done whoever holds the lock."""

ANYBODY = {"has_owner": "return true", "same_epoch": "return true"}
"""Events of a job are read and applied by whoever asks."""

LOOSE = {"has_owner": "return redis.call('SISMEMBER', owner_key(node), id) == 1", "same_epoch": "return true"}
"""A job is the job of everybody who has it on his list."""

ADDED = """
write('SADD', owner_key(node), id)
write('SADD', limits.store .. 'owners', node)
write('HSET', job_key(id), 'ownerNode', node, 'ownershipState', 'Owned', 'lastOwner', former)
return write('HINCRBY', job_key(id), 'ownerEpoch', 1)
"""
"""A body of `own` that leaves the job on its former owner's list."""

MARKED = """
write('HSET', job_key(facts.jobId), 'ownershipState', facts.state)
return {marked = true}
"""
"""A body of `mark` for any job, whosoever it is and whether or not it has ended."""

OWN_GROUP = {"group_of": "return limits.group .. ':' .. node"}
"""Each owner reads a job's channels through a group of its own."""
