"""What `holdfast doctor` and `holdfast serve` say of a store with Sentinels, and what doctor tries of hooks."""

import re
from pathlib import Path

import pytest

from holdfast.target.descriptor import load
from tests.fixtures.standing import JOBS
from tests.fixtures.test_store_deployments import WRITER
from tests.product.test_two_roles import doctor, served

HOOKS = """
store = "echo '{}'"

[stimulus]
enqueue = { redis = ["XADD", "jobs", "*", "data", "{json}"] }
missing = "no-such-program {id}"
told = "echo {stub.gc}"

[query]
job = { redis = ["HGETALL", "job:{id}"] }
seeded = { redis = ["SMEMBERS", "seeded"] }
asked = { http = "GET {nodes.a.url}/jobs/{id}-unknown" }
nowhere = { http = "GET http://127.0.0.1:1/{id}" }
writes = { redis = ["SET", "x", "1"] }
words = "echo not json"

[seed]
job = { redis = [["HSET", "job:{id}", "state", "{state}"], ["SADD", "seeded", "{id}"]] }
"""
ATTACHED = """
[target]
name = "theirs"
spec = "admission"

[[node]]
name = "a"
urls = { http = "http://127.0.0.1:1" }

[stimulus]
enqueue = "touch {mark}"
[query]
jobs = "echo []"
"""


def squeezed(said: str) -> list[str]:
    return [" ".join(line.split()) for line in said.splitlines()]


def test_hooks_are_tried_on_nodes_that_we_started(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(JOBS + HOOKS)
    code, said = doctor(tmp_path, tmp_path / "jobs.toml")
    lines = squeezed(said)
    assert code == 1, said
    for good in (
        "ok [seed] job `HSET 'job:{id}' state '{state}'; SADD seeded '{id}'` answered",
        "ok [stimulus] enqueue `XADD jobs '*' data '{json}'` answered",
        "ok [query] seeded `SMEMBERS seeded` answered",
        "ok [query] job `HGETALL 'job:{id}'` answered",
        "ok [observe] store `echo '{}'` answered",
    ):
        assert good in lines, said
    assert "– [stimulus] told not tried: it needs a stub, which only a check plays" in lines
    reached = (
        "– [query] asked reached, with holdfast-doctor for id: `GET {nodes.a.url}/jobs/{id}-unknown` was answered 404"
    )
    assert any(line.startswith(reached) for line in lines), said
    for bad, why in (
        ("[stimulus] missing", "ended with status 127"),
        ("[query] nowhere", "could not be sent to http://127.0.0.1:1/holdfast-doctor"),
        ("[query] writes", "was not sent: a query must not change anything, and SET may"),
        ("[query] words", "answered something else than one JSON document: not json"),
    ):
        assert any(line.startswith(f"FAIL {bad}") and why in line for line in lines), said
    order = [line for line in lines if "[seed]" in line or "[stimulus]" in line or "[query]" in line]
    assert [re.search(r"\[(\w+)\]", line)[1] for line in order] == [*["seed"], *["stimulus"] * 3, *["query"] * 6]  # type: ignore[index]  # each has one


@pytest.mark.parametrize("allowed", [False, True])
def test_a_hook_that_changes_something_is_tried_on_others_nodes_only_if_allowed(tmp_path: Path, allowed: bool) -> None:
    mark = tmp_path / "called"
    (tmp_path / "theirs.toml").write_text(ATTACHED.replace("{mark}", str(mark)))
    _, said = doctor(tmp_path, tmp_path / "theirs.toml", *(["--disruptive"] if allowed else []))
    assert "ok [query] jobs `echo '[]'` answered" in squeezed(said), said
    assert mark.exists() is allowed
    not_tried = "– [stimulus] enqueue not tried: it changes something; add --disruptive"
    assert (not_tried in squeezed(said)) is not allowed


def test_the_doctor_asks_every_sentinel(tmp_path: Path) -> None:
    (tmp_path / "writer.toml").write_text(WRITER)
    code, said = doctor(tmp_path, tmp_path / "writer.toml")
    assert code == 0, said
    lines = squeezed(said)
    primary = next(
        m[1] for line in lines if (m := re.match(r"ok store primary (\S+), replicas 127\.0\.0\.1:\d+$", line))
    )
    named = [m.groups() for line in lines if (m := re.match(r"ok sentinel (\d) \S+: orders is (\S+), quorum 2$", line))]
    assert named == [(number, primary) for number in "123"], said


def test_a_served_store_is_told_with_its_sentinels(tmp_path: Path) -> None:
    (tmp_path / "writer.toml").write_text(WRITER)
    with served(tmp_path, "1", tmp_path / "writer.toml") as descriptor:
        text = descriptor.read_text()
        redis = str(load(descriptor).observe["redis"])
        leads = re.search(r"^# store: primary (\S+), replicas (\S+)$", text, re.MULTILINE)
        assert leads
        assert redis.startswith(f"redis://{leads[1]}")
        watched = re.search(r"^# sentinels: orders is watched by (.*), of which 2 must agree$", text, re.MULTILINE)
        assert watched
        assert len({*watched[1].split(", "), leads[1], leads[2]}) == 5
