"""Token and scope (seed 3.1 step 1): who is nobody, who may post intents, and in which order that is found out."""

import json

from holdfast.check.finding import demand, expect
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.client import NOBODY, Intents
from holdfast.conformance.intents.refusals import UNKNOWN, in_query, nobodies
from holdfast.conformance.intents.wire import Answer, accepted, refused

# Credentials of the descriptor with scopes that only look like v3:write.
NEAR_MISSES = {"near_miss": "v3:write-preview", "near_miss2": "xv3:write", "near_miss3": "v3:status"}


@verifies("IN-AUTH-01")
async def test_only_a_bearer_token_that_is_known_in_full_is_let_in(intents: Intents) -> None:
    body = intents.start_body(intents.channel())
    for authorization in nobodies(intents):
        answer = await intents.post(body, authorization)
        expect(answer, refused(401), why=f"Authorization: {authorization or '(none)'}")
    for name, request in in_query(intents, wire.intent(body)).items():
        expect(await intents.call(request, NOBODY), refused(401), why=f"the token in the URL, as {name}")

    session = await intents.begin(intents.channel())
    expect(session.answer, accepted(), why="control: the same with the token in full")


@verifies("IN-AUTH-02")
async def test_the_scope_to_write_is_needed_and_suffices(intents: Intents) -> None:
    ref = intents.channel()
    expect(await intents.start(ref, authorization=intents.reader), refused(403), why="a token with v3:read only")
    expect(await intents.start(ref), accepted(), why="a token with v3:write only")


@verifies("IN-AUTH-02", part=2, isolation="disruptive", nodes={"api": 1, "worker": 1}, waits="api_ready")
async def test_a_scope_that_only_contains_the_right_one_is_not_it(intents: Intents) -> None:
    near = {name: intents.bearer(name) for name in NEAR_MISSES if intents.has_credential(name)}
    if len(near) < len(NEAR_MISSES):
        near = await _give_near_misses(intents)
    for name, authorization in near.items():
        answer = await intents.start(intents.channel(), authorization=authorization)
        expect(answer, refused(403), why=f"a token whose only scope is {NEAR_MISSES[name]}")
    expect(await intents.start(intents.channel()), accepted(), why="control: a token whose only scope is v3:write")


async def _give_near_misses(intents: Intents) -> dict[str, str]:
    """Starts the API with tokens of its own, one for each scope; returns the headers by the name of the credential."""
    given = {name: f"holdfast-{name}-of-the-suite" for name in NEAR_MISSES}
    tokens = [{"token": given[name], "scopes": [scope], "user": name} for name, scope in NEAR_MISSES.items()]
    for name, scope in (("write", "v3:write"), ("read", "v3:read")):
        tokens.append({"token": intents.credential(name), "scopes": [scope], "user": name})
    await intents.restart(intents.apis[0], api_tokens=json.dumps(tokens))
    return {name: f"Bearer {token}" for name, token in given.items()}


@verifies("IN-AUTH-03")
async def test_a_bad_body_is_not_looked_at_before_its_sender(intents: Intents) -> None:
    for text in ("{", "{}"):
        for authorization in (NOBODY, UNKNOWN):
            answer = await intents.post_text(text, authorization)
            expect(answer, refused(401), why=f"body {text} without a token that is known")
        expect(await intents.post_text(text, intents.reader), refused(403), why=f"body {text} without the scope")
        expect(await intents.post_text(text), refused(400), why=f"control: body {text} from one who may")


@verifies("IN-AUTH-03")
async def test_no_refusal_tells_of_the_session_that_its_parameters_would_map_to(intents: Intents) -> None:
    session = await intents.running()
    for authorization, code in ((NOBODY, 401), (UNKNOWN, 401), (intents.reader, 403)):
        answer = await intents.start(session.target, session.profile, authorization)
        _tells_nothing(answer, code, session.id, "the start of a session that runs")
    expect(await intents.start(session.target, session.profile), accepted(session.id), why="control: who may")


@verifies("IN-AUTH-03")
async def test_an_invalid_payload_is_refused_before_its_key_is_looked_up(intents: Intents) -> None:
    session = await intents.running_vod()
    body = intents.vod_body(session.target, "x", session.profile)
    _tells_nothing(await intents.post(body), 400, session.id, "an offset that is no number")
    expect(await intents.vod(session.target, 0, session.profile), accepted(session.id), why="control: offset 0")


def _tells_nothing(answer: Answer, code: int, session_id: str, why: str) -> None:
    expect(answer, refused(code), why=why)
    said = " ".join((answer.text, *answer.headers.values()))
    demand(session_id not in said, "no word of the session", answer.describe(), why)
