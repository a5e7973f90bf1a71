"""The descriptor of the coordinator reference: the reference reads every setting, and the deployment takes jobs."""

import dataclasses
import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from holdfast.check.hooks import Hooks
from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.reference.coordinator.settings import Settings
from holdfast.spec import catalogue
from holdfast.spec.catalogue import Catalogue
from holdfast.target.descriptor import builtin_path, load
from tests.fixtures.conftest import guardian, ports
from tests.fixtures.standing import check_on
from tests.fixtures.test_roles import own, standing
from tests.reference.coordinator.world import job_id, until

__all__ = ["guardian", "ports"]

# The least that makes a catalogue: the descriptor is read with it until the spec has its own.
CATALOGUE = """
[spec]
key = "coordinator"
title = "Coordinator"
source = "none"
version = "1.0"

[timings.seed]
lease = "30s"
heartbeat_interval = "10s"
dead_node_timeout = "30s"
handoff_ack_timeout = "5s"
handoff_hard_timeout = "60s"
orphan_check_interval = "30s"
orphan_wait = "30s"
renew_interval = "10s"

[timings.ours.parameter]
dispatch_scan = "1s"
schedule_scan = "1s"
timeout_scan = "1s"

[limits.seed]
handoff_max_retries = 3
imbalance_ratio = 2.0

[[requirement]]
id = "CO-ROLE-01"
section = "1"
lines = "1"
level = "MUST"
origin = "seed"
title = "One leads"
text = "One node leads."
needs = ["wire"]
observe = "One leads."
violations = ["None does."]
"""
PARAMETERS = {
    "stimulus.enqueue": ["job_id", "queue", "due_ms", "timeout_ms"],
    "stimulus.schedule": ["schedule_id", "queue", "period_ms", "first_ms"],
    "stimulus.cancel": ["job_id"],
    "query.job": ["job_id"],
    "query.jobs_of": ["node_id"],
    "query.nodes": [],
    "query.logs": ["job_id"],
    "query.workers": [],
    "seed.job": ["job_id", "owner", "status", "history_id"],
}


def known_by(folder: Path) -> Catalogue:
    hooks = "".join(
        f'\n[[hook]]\nname = "{name}"\ndoc = "a hook"\nparameters = {json.dumps(parameters)}\n'
        for name, parameters in PARAMETERS.items()
    )
    (folder / "catalogue.toml").write_text(CATALOGUE + hooks)
    return catalogue.load(folder / "catalogue.toml")


def test_every_setting_of_the_descriptor_is_read_by_the_reference() -> None:
    said: dict[str, Any] = tomllib.loads(builtin_path("coordinator").read_text())
    read = {each.metadata[kind] for each in dataclasses.fields(Settings) for kind in ("env", "flag")}
    named = {name for node in said["node"] for name in node["env"]}
    named |= {each["flag"] for name, each in said["settings"].items() if name != "violate"}
    assert named <= read


@asynccontextmanager
async def hooks_on(guardian: Guardian, ports: PortPool, folder: Path) -> AsyncIterator[Hooks]:
    text, known = builtin_path("coordinator").read_text(), known_by(folder)
    async with check_on(guardian, ports, folder, text, known) as (context, _):
        yield await context.get(Hooks)


async def test_a_job_that_is_given_by_a_hook_is_owned_and_seen_by_the_others(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    async with hooks_on(guardian, ports, tmp_path) as hooks:
        one, other = job_id(), job_id()
        await hooks.stimulus("enqueue", job_id=one, queue="q", due_ms=0, timeout_ms=0)

        async def owned(job: str) -> bool:
            return job in (await hooks.query("jobs_of", node_id="a")).document

        await until(partial(owned, one))
        assert (await hooks.query("job", job_id=one)).document["status"] == "Dispatched"
        assert (await hooks.query("logs", job_id=one)).document == []
        await hooks.seed("job", job_id=other, owner="ghost", status="Running", history_id=job_id())
        await hooks.stimulus("schedule", schedule_id="s", queue="q", period_ms=60_000, first_ms=0)
        await hooks.stimulus("cancel", job_id=one)
        assert (await hooks.query("jobs_of", node_id="ghost")).document == [other]
        assert [json.loads(each)["nodeId"] for each in (await hooks.query("nodes")).document] == ["a"]


async def test_the_descriptor_starts_as_many_nodes_as_wanted(
    guardian: Guardian, ports: PortPool, tmp_path: Path
) -> None:
    target = load(builtin_path("coordinator"), known_by(tmp_path))
    async with standing(guardian, ports, target, own(3)) as deployment:
        assert sorted(deployment.nodes) == ["a", "b", "c"]
