"""Looks before the first check whether the descriptor leads to the cluster's channels, changing nothing."""

from redis.exceptions import AuthenticationError, RedisError

from holdfast.check.finding import Inconclusive, WronglyGiven
from holdfast.check.plain import in_words
from holdfast.conformance.coordinator.client import Cluster


async def look(cluster: Cluster) -> list[str]:
    """Returns what was let in; raises WronglyGiven if Redis does not let the suite in."""
    file = cluster.context.target.file
    try:
        await cluster.bus.redis.ping()
    except AuthenticationError as refused:
        raise WronglyGiven(f"[observe] redis: {in_words(refused)}; mend it in {file}") from refused
    except (RedisError, OSError) as error:
        raise Inconclusive(f"no answer of Redis: {in_words(error)}") from error
    return ["redis"]
