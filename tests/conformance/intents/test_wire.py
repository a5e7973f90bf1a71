"""The wire of intents: golden vectors of the key, and answers read as the protocol compares them."""

import asyncio
import json
from typing import Any

import pytest

from holdfast.conformance.intents import wire
from holdfast.conformance.intents.dialects import Xg2g
from holdfast.conformance.intents.places import Places
from holdfast.conformance.intents.wire import Answer

CURRENT = "holdfast-idem-current-000000000001"
PREVIOUS = "holdfast-idem-previous-00000000001"
REF = "1:0:19:132F:3EF:1:C00000:0:0:0:"
VECTORS = [
    (CURRENT, REF, "universal", 0, "07a1878f202602d1b7a5c7c6e52db8c8ddc05b15e13c990b4f4d348b87f7e66a"),
    (PREVIOUS, REF, "universal", 0, "0599a6583157063edf513f0ffd26d1d5c031d7e26bcd99bfb41e6a5ba592a997"),
    (CURRENT, REF, "low", 0, "dfe2d9228fae15d63c08dc4c809163212cccdcb0a84725661c210495c34f9581"),
    (CURRENT, "rec-0001", "universal", 10, "37cb0d3829aa49431cf29fe5f8f882b21241b5696990c98af5bfb38f83a284c3"),
    (CURRENT, "rec-0001", "universal", 60, "878e10be8609d445f375891488aebed316a4baf0d94a20f794a44a037d3976ba"),
    (CURRENT, "rec-0002", "universal", 10, "27569b2a4db9f096e9c57add76396b814f50d55c21b3731f83558fbe8d7a85c1"),
    ("", REF, "universal", 0, "1ceff5280270e85d0e91070c94d0876d50f5bec187d65ccc70d2f3a00d2a948a"),
]


def answer(status: int, **members: Any) -> Answer:
    return Answer(status, {}, members, json.dumps(members))


@pytest.mark.parametrize(("secret", "target", "profile", "bucket", "key"), VECTORS, ids=range(1, 8))
def test_a_key_is_that_of_the_golden_vector(secret: str, target: str, profile: str, bucket: int, key: str) -> None:
    assert wire.idem_key(secret, target, profile, bucket) == key


def test_the_id_of_a_session_is_read_under_both_names() -> None:
    assert answer(202, session_id="s1").session_id == answer(202, sessionId="s1").session_id == "s1"
    assert answer(202, sessionId=7).session_id == ""


@pytest.mark.parametrize(
    ("state", "reason"), [("FAILED", "R_LEASE_BUSY"), ("ended", "rejected_busy"), ("REJECTED_BUSY", "")]
)
def test_a_busy_verdict_is_read_as_state_or_reason_in_any_case(state: str, reason: str) -> None:
    seen = answer(410, state=state, reason=reason)
    assert wire.ended_busy().matches(seen)
    assert not wire.ended_without_tuner().matches(seen)


def test_a_running_session_is_not_rejected_whatever_its_reason_says() -> None:
    assert not answer(200, state="READY", reason="R_LEASE_BUSY").rejected


def test_a_refusal_that_names_a_session_is_none() -> None:
    assert wire.refused(401).matches(answer(401))
    assert not wire.refused(401).matches(answer(401, sessionId="s1"))
    assert not wire.refused(401).matches(answer(403))


def test_the_public_spelling_carries_its_profile_and_a_decision() -> None:
    body = Xg2g({"decision_secret": "x" * 32}, str).start(REF, "low")
    assert body["params"] == {"profile": "low"}
    assert "profileID" not in body
    assert body["playbackDecisionToken"].count(".") == 2


async def test_places_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    places, order = Places(3), list[str]()

    async def take(name: str, count: int) -> None:
        await places.take(count)
        order.append(name)

    await take("first", 2)
    waiting = [asyncio.ensure_future(take("many", 9)), asyncio.ensure_future(take("one", 1))]
    await asyncio.sleep(0)
    assert order == ["first"]
    await places.give_back(2)
    await waiting[0]
    await places.give_back(3)
    await waiting[1]
    assert order == ["first", "many", "one"]
