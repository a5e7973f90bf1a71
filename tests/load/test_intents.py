"""Campaigns of intents: their rules over a history, and whom and what else they look at."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.check.history import History, Operation, Outcome
from holdfast.check.invariants import Judged
from holdfast.conformance.intents.keys import IntentKeys
from holdfast.load.campaign import campaigns
from holdfast.load.plan import plan_of
from holdfast.load.rules import RULES
from holdfast.load.streams import TEMPLATES, key_name
from holdfast.load.subjects import resolver
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

URLS = {"a": {"http": "http://127.0.0.1:1001"}, "b": {"http": "http://127.0.0.1:1002"}, "w": {"ops": "http://x"}}


def seen(what: str, session: str, at: float, *, channel: str = "r", profile: str = "p") -> Operation:
    return Operation(session, what, channel, profile, Outcome.OK, session, at, at + 0.1)


def judged(rule: str, *operations: Operation, **numbers: float) -> Judged:
    return RULES[rule](History.of(operations), numbers).judged


def herd(size: int, odd: int = 0) -> list[Operation]:
    """A hundred herds, one of whose answers may name another session."""
    starts = [seen("start", f"s{number // size}", number, channel=f"r{number // size}") for number in range(100 * size)]
    return [*starts[:odd], starts[odd]._replace(client="x", value="x"), *starts[odd + 1 :]] if odd else starts


def test_one_answer_with_another_session_among_ten_thousand_is_found() -> None:
    assert judged("one session an intent", *herd(100)) is Judged.HOLDS
    assert judged("one session an intent", *herd(100, odd=5037)) is Judged.VIOLATED


def test_an_intent_has_a_new_session_once_the_last_one_was_stopped() -> None:
    again = [seen("start", "s1", 0), seen("stop", "s1", 1), seen("start", "s2", 2)]
    assert judged("one session an intent", *again) is Judged.HOLDS
    assert judged("one session an intent", again[0], again[2]) is Judged.VIOLATED


def test_profiles_of_one_channel_are_intents_of_their_own_and_one_of_them_runs() -> None:
    starts = [seen("start", "s1", 0), seen("start", "s2", 0, profile="q")]
    assert judged("one session an intent", *starts) is Judged.HOLDS
    first, second = seen("run", "s1", 1), seen("run", "s2", 2, profile="q")
    assert judged("one session a channel", *starts, first) is Judged.HOLDS
    assert judged("one session a channel", *starts, first, second) is Judged.VIOLATED
    assert judged("one session a channel", *starts, first, seen("stop", "s1", 1.5), second) is Judged.HOLDS


def test_a_start_without_an_answer_accuses_nobody() -> None:
    lost = Operation("nobody", "start", "r", "p", Outcome.UNKNOWN, None, 0.5, float("inf"))
    assert judged("one session an intent", seen("start", "s1", 0), lost, seen("start", "s1", 1)) is Judged.HOLDS


def test_one_session_more_than_there_are_slots_is_found() -> None:
    running = [seen("run", f"s{number}", number, channel=f"r{number}") for number in range(3)]
    assert judged("slots", *running, slots=3) is Judged.HOLDS
    assert judged("slots", *running, slots=2) is Judged.VIOLATED
    assert judged("slots", *running, seen("stop", "s0", 1.5), slots=2) is Judged.HOLDS


@pytest.mark.parametrize("name", campaigns("intents"))
def test_everything_that_is_judged_rests_on_a_row(name: str) -> None:
    rows, each = set(builtin("intents").requirements), campaigns("intents")[name]
    rests_on = [budget.rests_on for budget in each.budgets] + [count.rests_on for count in each.counts]
    rests_on += [recovery.rests_on for recovery in each.recoveries] + [audit.rests_on for audit in each.audits]
    assert set(rests_on) <= rows
    assert set(each.rules) <= set(RULES)


def test_streams_that_audits_name_are_keys_of_the_spec_as_the_descriptor_spells_them() -> None:
    named = {audit.stream for each in campaigns("intents").values() for audit in each.audits} - {""}
    assert named == {"bus"}
    assert named <= set(TEMPLATES["intents"])
    assert key_name("intents", "bus", {}) == IntentKeys.templates["bus"]
    assert key_name("intents", "bus", {"prefix": "x:", "keys": {"bus": "b"}}) == "x:b"


def test_the_worker_is_whoever_has_that_role_and_intents_go_to_the_others(tmp_path: Path) -> None:
    target = load(builtin_path("intents"))
    plan = plan_of(campaigns("intents")["L9"], target, target.timings(builtin("intents")), URLS, tmp_path / "out")
    assert [node.name for node in plan.nodes] == ["a", "b"]

    async def resolved() -> list[str]:
        roles = {"a": "api", "b": "api", "w": "worker"}
        return [await resolve("{worker}") for resolve in (resolver(plan, roles), resolver(plan))]

    assert asyncio.run(resolved()) == ["w", "a"]


def test_a_campaign_may_want_few_nodes_of_one_role_and_settings_by_value_or_by_name() -> None:
    each = campaigns("intents")["L3"]
    assert (each.nodes_of("worker", 2), each.nodes_of("api", 2)) == (1, 2)
    assert each.settings_for({}) == {"tuner_slots": "0-7"}
    other = campaigns("lockd")["L1"]
    assert (other.nodes_of("", 3), other.settings_for({"shared_store": "s"})) == (3, {"store": "s"})
    assert other.settings_for({}) == {}


def test_a_campaign_about_eight_slots_is_not_made_on_a_target_that_has_its_own(tmp_path: Path) -> None:
    target = load(builtin_path("intents"))
    others = replace(target, settings={name: how for name, how in target.settings.items() if name != "tuner_slots"})
    plans = [
        plan_of(campaigns("intents")["L3"], each, each.timings(builtin("intents")), URLS, tmp_path / "out")
        for each in (target, others)
    ]
    assert [plan.unfit for plan in plans] == ["", "could not arrange it: nodes that are started with tuner_slots 0-7"]
