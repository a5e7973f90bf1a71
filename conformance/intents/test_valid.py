"""Payloads (seed 3.1 step 2): what is no valid intent is refused with 400, and goes no further."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from holdfast.check import raw_http
from holdfast.check.finding import NotApplicable, demand, expect
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import refusals, wire
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted, refused
from holdfast.conformance.shared.wire import cut_off

CODES = {400: "INVALID_INPUT", 401: "UNAUTHORIZED", 403: "FORBIDDEN"}


async def _are_refused(intents: Intents, bodies: Mapping[str, Any]) -> None:
    for what, body in bodies.items():
        with intents.context.collect():
            expect(await intents.post(body), refused(400), why=what)


@verifies("IN-VALID-01")
async def test_a_body_that_is_no_json_object_is_400(intents: Intents) -> None:
    for text in refusals.NO_OBJECTS:
        with intents.context.collect():
            expect(await intents.post_text(text), refused(400), why=f"the body {json.dumps(text)}")
    expect(await intents.start(intents.channel()), accepted(), why="control: a valid start")


@verifies("IN-VALID-01", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="give_up + 2*quiet_watch")
async def test_what_is_refused_leaves_nothing_behind(intents: Intents) -> None:
    taken = await _taken(intents)

    async def send_refused() -> None:
        for text in refusals.NO_OBJECTS:
            await intents.post_text(text)
        for what, body in refusals.bodies(intents).items():
            if what not in taken:
                await intents.post(body)

    await intents.leaves_no_trace(send_refused, "all payloads that are refused with 400")
    expect(await intents.start(intents.channel()), accepted(), why="control: a valid start")


async def _taken(intents: Intents) -> set[str]:
    """Sends all bodies once and returns which were not refused with 400; what they started is over by then."""
    answers = {what: await intents.post(body) for what, body in refusals.bodies(intents).items()}
    taken = {what: answer for what, answer in answers.items() if answer.status != 400}
    sessions = [Session(answer.session_id, "", None, answer) for answer in taken.values() if answer.session_id]
    await intents.stopped(*sessions)

    async def nothing_held() -> bool:
        return not await intents.store.leases()

    with intents.context.arranging("IN-RUN-06"):
        await intents.T.until(nothing_held, give_up=intents.never("stop_release"), what="all leases to be released")
    return set(taken)


@verifies("IN-VALID-02")
async def test_a_live_start_needs_a_channel_that_is_a_text(intents: Intents) -> None:
    await _are_refused(intents, refusals.without_channel(intents))
    expect(await intents.start(intents.channel()), accepted(), why="control: the same with a channel")


@verifies("IN-VALID-02")
async def test_a_profile_is_one_that_the_target_has(intents: Intents) -> None:
    await _are_refused(intents, refusals.with_bad_profile(intents))
    expect(await intents.start(intents.channel()), accepted(), why="control: the same with a profile of the target")


@verifies("IN-VALID-02")
async def test_without_a_profile_the_default_one_is_taken(intents: Intents) -> None:
    await intents.places()
    body = intents.adapter.start(intents.channel(), None)
    del body["type"]
    expect(await intents.post(body), accepted(), why="a start that names its channel and nothing else")


@verifies("IN-VALID-03")
async def test_fields_of_a_key_are_complete_and_unambiguous(intents: Intents) -> None:
    await _are_refused(intents, refusals.with_bad_key_fields(intents))
    expect(await intents.start(intents.channel()), accepted(), why="control: a start with nothing wrong")


@verifies("IN-VALID-03", waits="give_up")
async def test_a_recording_starts_at_its_beginning_unless_an_offset_is_given(intents: Intents) -> None:
    session = await intents.running_vod()
    last = intents.T.count("vod_zero_last_ms")
    again = await intents.vod(session.target, last, session.profile)
    expect(again, accepted(session.id), why=f"the same recording at {last} ms")
    body = intents.vod_body(session.target, None, session.profile)
    del body["type"]
    expect(await intents.post(body), accepted(session.id), why="the same recording without an offset")


@verifies("IN-VALID-03")
async def test_the_old_field_for_the_profile_may_only_repeat_it(intents: Intents) -> None:
    if not (contradicting := refusals.contradicting(intents)):
        raise NotApplicable("the target's intents have one field for the profile")
    await _are_refused(intents, contradicting)
    await intents.places()
    body = intents.start_body(intents.channel())
    body["profile"] = body["profileID"]
    expect(await intents.post(body), accepted(), why="both fields with the same profile")


@verifies("IN-VALID-04")
async def test_an_intent_keeps_to_the_schema(intents: Intents) -> None:
    await _are_refused(intents, refusals.ill_formed(intents))
    await intents.places()
    body = intents.start_body(intents.channel())
    del body["type"]
    expect(await intents.post(body), accepted(), why="control: a start that says no type")


@verifies("IN-VALID-04")
async def test_a_body_above_the_limit_is_refused(intents: Intents) -> None:
    body = intents.start_body(intents.channel(), params={"pad": "x" * intents.T.count("body_max_bytes")})
    answer = await _post_raw(intents, body)
    # A server that does not read on may end the connection, and its answer is lost with it.
    expect(answer, refused(400, 413), cut_off(), why="a body above the limit")
    expect(await intents.start(intents.channel()), accepted(), why="control: a start of the usual size")


@verifies("IN-VALID-04")
async def test_every_refusal_is_a_problem_document(intents: Intents) -> None:
    await intents.places()
    sound = intents.start_body(intents.channel())
    calls = {
        **{
            f"Authorization: {said or '(none)'}": partial(intents.post, sound, said)
            for said in refusals.nobodies(intents)
        },
        **{
            f"the token in the URL, as {name}": partial(intents.call, request, "")
            for name, request in refusals.in_query(intents, wire.intent(sound)).items()
        },
        "a token with v3:read only": partial(intents.post, sound, intents.reader),
        **{f"the body {json.dumps(text)}": partial(intents.post_text, text) for text in refusals.NO_OBJECTS},
        **{what: partial(intents.post, body) for what, body in refusals.bodies(intents, refusals.ANSWERED).items()},
    }
    seen = {what: await call() for what, call in calls.items()}
    pad = "x" * intents.T.count("body_max_bytes")
    seen["a body above the limit"] = await _post_raw(intents, {**sound, "params": {"pad": pad}})
    for what, answer in seen.items():
        with intents.context.collect():
            if 400 <= answer.status < 500:
                _is_problem(answer, what)


def _is_problem(answer: Answer, why: str) -> None:
    expect(answer.media_type, wire.PROBLEM, why=f"Content-Type of the refusal of {why}")
    expect(answer.fields.get("status"), answer.status, why=f"member status of the refusal of {why}")
    if answer.status in CODES:
        expect(answer.code, CODES[answer.status], why=f"member code of the refusal of {why}")
    demand(answer.code, "a code", answer.describe(), why)
    named = answer.headers.get("X-Request-ID", "")
    demand(named, "a header X-Request-ID", "none", why)
    expect(answer.request_id, named, why=f"requestId, as in the header X-Request-ID, of the refusal of {why}")


async def _post_raw(intents: Intents, body: Any) -> Answer:
    """Posts a body without a client library: one that is refused early could not finish writing, and read no answer."""
    headers = {"Authorization": intents.bearer()}
    return await intents.send_raw([raw_http.request("POST", wire.INTENTS, headers, json.dumps(body).encode())])
