"""`[store]` of a descriptor: what it means by default, how it scales, and what it refuses."""

from pathlib import Path

import pytest

from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import Target, TargetError, builtin_path, load
from holdfast.target.store_section import StorePlan

NODE = """
[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:{port}" }
start = "serve --port {port} USES"
"""


def target(folder: Path, uses: str = "", store: str = "") -> Target:
    path = folder / "mine.toml"
    path.write_text(NODE.replace("USES", uses) + (f"\n[store]\n{store}\n" if store else ""))
    return load(path)


def plan(found: Target, scale: float = 1.0, variant: str = "") -> StorePlan:
    return found.store.plan(found.at_scale(scale).timings(builtin(found.spec)), variant)


def test_who_mentions_redis_gets_one_and_who_does_not_gets_none(tmp_path: Path) -> None:
    assert plan(target(tmp_path, "--redis {redis}")) == StorePlan("redis")
    assert plan(target(tmp_path)) == StorePlan("none")
    assert load(builtin_path("admission")).store.kind == "redis"
    assert load(builtin_path("lockd")).store.kind == "none"


def test_a_set_has_the_values_that_are_usual_unless_told_otherwise(tmp_path: Path) -> None:
    found = target(tmp_path, "--sentinels {sentinels} --name {master_name}", 'kind = "sentinel"')
    assert plan(found) == StorePlan("sentinel", 1, 3, 2, 5.0, 30.0, "mymaster")
    assert found.gets_redis
    assert Capability.CHAOS_REDIS in found.capabilities()
    assert plan(target(tmp_path, "{replica}", 'kind = "replica"\nreplicas = 2')) == StorePlan("replica", 2)


def test_timings_scale_down_to_the_floor_and_literals_stay(tmp_path: Path) -> None:
    named = 'kind = "sentinel"\ndown_after = "poll_interval"\nfailover_timeout = "janitor_interval"'
    found = target(tmp_path, "{sentinels}", named)
    assert (plan(found, 0.2).down_after, plan(found, 0.2).failover_timeout) == (1.0, 6.0)
    assert (plan(found, 0.02).down_after, plan(found, 0.02).failover_timeout) == (0.5, 3.0)
    literal = target(tmp_path, "{sentinels}", 'kind = "sentinel"\ndown_after = "2s"\nfailover_timeout = "1m"')
    assert (plan(literal, 0.2).down_after, plan(literal, 0.2).failover_timeout) == (2.0, 60.0)


def test_a_mutant_differs_in_what_it_names(tmp_path: Path) -> None:
    found = target(tmp_path, "{sentinels}", 'kind = "sentinel"\nmutants = { "X-1/1" = { sentinels = 1, quorum = 1 } }')
    assert (plan(found, variant="X-1/1").sentinels, plan(found, variant="X-1/1").quorum) == (1, 1)
    assert plan(found, variant="X-1/2") == plan(found)
    assert len({plan(found), plan(found, variant="X-1/1")}) == 2


@pytest.mark.parametrize(
    ("uses", "store", "complaint"),
    [
        ("{redis}", 'kind = "cluster"', "'cluster' is none of none, redis, replica, sentinel"),
        ("{redis}", 'kind = "none"', r'"none" has no \{redis\}, which a uses; write kind = "redis" or "replica"'),
        ("{sentinels}", "", r'"none" has no \{sentinels\}, which a uses; write kind = "sentinel"'),
        ("{replica}", 'kind = "redis"', r'"redis" has no \{replica\}, which a uses'),
        ("{sentinels}", 'kind = "sentinel"\nquorum = 4', "4 of 3 sentinels can never agree"),
        ("{sentinels}", 'kind = "sentinel"\nreplicas = 0', r"\[store\] replicas: must be at least 1"),
        ("{sentinels}", 'kind = "sentinel"\ndown_after = "soon"', "neither a duration .* nor a timing"),
        ("{sentinels}", 'kind = "sentinel"\ndown_after = "100ms"', "less than 0.5 s"),
        ("{sentinels}", 'kind = "sentinel"\nmaster_name = "my master"', "is no single word"),
        ("{sentinels}", 'kind = "sentinel"\nmutants = { "X-1/1" = { port = 1 } }', r"\[store.mutants\] X-1/1: no such"),
        ("{sentinels}", 'kind = "sentinel"\nmutants = { "X-1/1" = { quorum = 4 } }', "can never agree"),
        ("{sentinels}", 'kind = "sentinel"\nreplica = 2', "did you mean 'replicas'"),
    ],
)
def test_what_makes_no_sense_is_refused_with_the_remedy(tmp_path: Path, uses: str, store: str, complaint: str) -> None:
    with pytest.raises(TargetError, match=complaint):
        target(tmp_path, uses, store)


def test_nodes_of_an_operator_have_their_own_store(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(NODE.replace('start = "serve --port {port} USES"', "") + '\n[store]\nkind = "redis"\n')
    with pytest.raises(TargetError, match="only to nodes that it starts"):
        load(path)
