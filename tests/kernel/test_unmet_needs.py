from pathlib import Path

import pytest

from holdfast.check.verifies import spec_of, verifies
from holdfast.run.plan import make_plan
from holdfast.run.selection import PlanError, Selection
from holdfast.run.unmet_needs import lack
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import Target, load

TARGET = """
[target]
name = "mine"
spec = "admission"
[[node]]
name = "api-1"
role = "api"
urls = { http = "http://127.0.0.1:{port}" }
START
[[node]]
name = "worker-1"
role = "worker"
ready = { redis-key = "x" }
START
[settings]
grace = { env = "GRACE" }
"""


def target(folder: Path, start: str) -> Target:
    (folder / "mine.toml").write_text(TARGET.replace("START", start))
    return load(folder / "mine.toml")


@verifies(
    "AD-ADMIT-01", isolation="quiet", nodes={"api": 2, "worker": 1}, settings={"worker.grace": "1"}, start="by hand"
)
async def check() -> None: ...


@verifies("AD-ADMIT-01", isolation="quiet", nodes={"api": 1, "worker": 2})
async def two_workers() -> None: ...


@verifies("AD-ADMIT-01", isolation="quiet", start="by hand")
async def by_hand() -> None: ...


@verifies("AD-ADMIT-01", isolation="quiet", nodes={"gc": 1})
async def another_role() -> None: ...


@verifies("AD-ADMIT-01", start="by hand")
async def shared_by_hand() -> None: ...


@pytest.mark.parametrize(
    ("function", "started", "attached"),
    [
        (check, None, "[[node]] start and [settings] grace"),
        (by_hand, None, "[[node]] start"),
        (two_workers, None, 'a further [[node]] role = "worker"'),
        (another_role, '[[node]] role = "gc"', '[[node]] role = "gc"'),
    ],
)
def test_what_a_target_can_not_give_is_named(
    tmp_path: Path, function: object, started: str | None, attached: str
) -> None:
    spec = spec_of(function)
    assert spec
    for start, hook in (('start = "x"', started), ("", attached)):
        found = lack(spec, target(tmp_path, start))
        assert (found and found[1]) == hook


def test_a_part_whose_only_check_wants_another_role_is_not_observable(tmp_path: Path) -> None:
    spec = spec_of(another_role)
    assert spec
    catalogue = builtin("admission")
    plan = make_plan(catalogue, target(tmp_path, 'start = "x"'), {"c": spec}, Selection(("AD-ADMIT-01",)))
    first = plan.rows["AD-ADMIT-01"][0]
    assert (first.status, first.hook) == ("not-observable", '[[node]] role = "gc"')


def test_nodes_of_a_shared_deployment_can_not_be_started_by_hand(tmp_path: Path) -> None:
    spec = spec_of(shared_by_hand)
    assert spec
    with pytest.raises(PlanError, match="needs a deployment of its own"):
        make_plan(builtin("admission"), target(tmp_path, 'start = "x"'), {"c": spec}, Selection(("AD-ADMIT-01",)))
