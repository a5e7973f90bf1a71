"""Who leads: only what all nodes say counts, and a part of a campaign's faults is named by it."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.conformance.lockd.wire import Leader
from holdfast.load.campaign import campaigns
from holdfast.load.leader import agreed
from holdfast.load.plan import Node, Plan, plan_of
from holdfast.load.subjects import PARTS, resolver
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

NODES = [Node(name, f"https://127.0.0.1:{port}") for name, port in (("a", 1001), ("b", 1002))]
B_LEADS = Leader("id-b", "https://127.0.0.1:1002", 3, 1)


def plan(key: str, folder: Path) -> Plan:
    target = load(builtin_path(key))
    urls = {node.name: {"https": node.url} for node in NODES}
    chosen = campaigns(key)["L1"]
    return plan_of(chosen, target, target.timings(builtin(key)), urls, folder / "generator.jsonl")


def test_a_leader_is_who_all_nodes_name_by_address_or_by_its_certificate() -> None:
    assert agreed(NODES, [B_LEADS, B_LEADS], {}) == "b"
    elsewhere = replace(B_LEADS, endpoint="https://b.example")
    assert agreed(NODES, [elsewhere, elsewhere], {"b": "id-b"}) == "b"


@pytest.mark.parametrize("other", [None, replace(B_LEADS, term=4), replace(B_LEADS, id="id-a")])
def test_nobody_leads_while_nodes_differ(other: Leader | None) -> None:
    assert agreed(NODES, [B_LEADS, other], {}) == ""


def test_faults_strike_the_nodes_in_turn_or_the_first_one(tmp_path: Path) -> None:
    async def resolved() -> list[str]:
        resolve = resolver(plan("admission", tmp_path))
        return [await resolve(each) for each in ("{next}", "{first}-redis", "{next}", "{next}", "redis", "leader")]

    assert asyncio.run(resolved()) == ["a", "a-redis", "b", "a", "redis", "leader"]


def test_every_part_that_a_campaign_names_has_somebody_who_says_who_plays_it() -> None:
    for key in ("admission", "lockd"):
        for each in campaigns(key).values():
            for fault in each.faults:
                plain = fault.subject == "redis" or "{" in fault.subject
                assert plain or (key, fault.subject) in PARTS


def test_a_plan_carries_certificates_as_text_for_workers_elsewhere(tmp_path: Path) -> None:
    target = load(builtin_path("lockd"))
    urls = {node.name: {"https": node.url} for node in NODES}
    bundle = tmp_path / "bundle.pem"
    bundle.write_text("-----BEGIN CERTIFICATE-----\n")
    made = plan_of(
        campaigns("lockd")["L1"],
        target,
        target.timings(builtin("lockd")),
        urls,
        tmp_path / "generator.jsonl",
        fill=lambda text, _node: str(bundle) if text.endswith(".pem") else text,
    )
    assert made.credentials["server_bundle"] == dict.fromkeys(("a", "b"), bundle.read_text())
    assert Plan.read(made.text()) == made
