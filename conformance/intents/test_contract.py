"""The published contract: what a generated or a real request gets is documented, by status and by schema.

The rows judge what the document says. A target that declares the whole contract (`[dialect] openapi`) has promised the
names, the codes and the schemas of `proto/intents/openapi.yaml` too, and is held to them here.
"""

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import pytest

from holdfast.check.bridge import Call, in_thread
from holdfast.check.faults import Faults
from holdfast.check.finding import Inconclusive, expect
from holdfast.check.generated import Round, fuzz
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import refusals, wire
from holdfast.conformance.intents.bystander import bystander
from holdfast.conformance.intents.client import NOBODY, PHASE_1, Intents
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, forwarded
from holdfast.conformance.shared.contract import must_be_declared
from holdfast.conformance.shared.wire import Request, parse_body
from holdfast.spec.contract import Contract, document

# Generated requests per operation, for valid and for invalid data each.
EXAMPLES = 5
# Kinds of answers, by call and status, that an ordinary day has at least.
LEAST_KINDS = 15
HEALTH, READINESS = Request("GET", "/healthz"), Request("GET", "/readyz")
PUBLIC = "8.8.8.8"


def _promised(intents: Intents) -> None:
    must_be_declared(intents.context.target.dialect.get("openapi"))


def _list(**query: str) -> Request:
    return Request("GET", wire.SESSIONS, query=query)


# Busy: a thread that computes slows the loop on which all other checks are timed.
@pytest.mark.parametrize("tag", ["intents", "sessions", "observation"])
@verifies("IN-VALID-04", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_generated_requests_get_documented_answers(intents: Intents, tag: str) -> None:
    _promised(intents)
    async with bystander(intents) as session:
        await in_thread(lambda call: _fuzz(call, intents, tag, session.id), deadline=intents.T.give_up)


def _fuzz(call: Call, intents: Intents, tag: str, session_id: str) -> None:
    import requests

    with requests.Session() as session:
        session.verify = False  # as in the driver: whether a connection is encrypted is judged, not who signed for it

        def ask(case: Any, authorization: str) -> Any:
            call(asyncio.sleep(0))  # ends the thread with its check
            headers = {"Authorization": authorization} if authorization else {}
            response = case.call(
                base_url=intents.url(), session=session, headers=headers, timeout=intents.answer_timeout
            )
            if response.status_code == HTTPStatus.ACCEPTED:
                intents.note_session(Answer(202, {}, *parse_body(response.content)).session_id)
            return response

        callers = [intents.bearer(), intents.reader, intents.bearer("admin"), NOBODY]
        ids = {"sessionID": session_id}
        rounds = [Round(caller, sound=sound, ids=ids if sound else {}) for caller in callers for sound in (True, False)]
        fuzz(document("intents"), tag, rounds, seed=intents.context.seed, count=EXAMPLES, ask=ask)


@contextlib.asynccontextmanager
async def _documented(intents: Intents, least: int) -> AsyncIterator[None]:
    """Judges all answers of the block by the contract. Raises Inconclusive for fewer kinds of them than `least`."""
    exchanges = list[tuple[Request, Answer]]()
    intents.listeners.append(lambda request, answer: exchanges.append((request, answer)))
    yield
    kinds = {(_call(request), answer.status) for request, answer in exchanges}
    if len(kinds) < least:
        raise Inconclusive(f"only {len(kinds)} kinds of answers were seen, which is no ordinary day")
    expect(Contract("intents").undocumented(exchanges), set(), why=f"of {len(exchanges)} answers")


def _call(request: Request) -> str:
    return wire.SESSIONS + "/{id}" if request.path.startswith(wire.SESSIONS + "/") else request.path


@verifies("IN-VALID-04", waits="give_up")
async def test_every_answer_of_an_ordinary_day_is_documented(intents: Intents) -> None:
    _promised(intents)
    async with _documented(intents, LEAST_KINDS):
        await _sessions_come_and_go(intents)
        await _callers_are_refused(intents)
        for request in (HEALTH, READINESS):
            await intents.call(request, NOBODY)


async def _sessions_come_and_go(intents: Intents) -> None:
    session, recording = await intents.running(), await intents.running_vod()
    await intents.post(intents.start_body(session.target, session.profile, correlationId="of-the-suite"))
    await intents.busy(session)
    for query in ({}, {"limit": "1"}, {"offset": "1", "limit": "0"}, {"limit": "5000"}, {"limit": "x"}):
        await intents.call(_list(**query), intents.bearer("admin"))
    await intents.stopped(session, recording)
    await intents.stop(session)
    await intents.stop(str(uuid.uuid4()))
    for id_ in (session.id, recording.id, str(uuid.uuid4()), "no*id"):
        await intents.poll(id_)


async def _callers_are_refused(intents: Intents) -> None:
    sound = intents.start_body(intents.channel())
    for authorization in refusals.nobodies(intents):
        await intents.post(sound, authorization)
        await intents.poll(str(uuid.uuid4()), authorization)
        await intents.call(_list(), authorization)
    await intents.post(sound, intents.reader)
    await intents.call(_list(), intents.reader)
    await intents.poll(str(uuid.uuid4()), intents.bearer())
    await intents.post(sound, headers=forwarded(PUBLIC))
    for text in refusals.NO_OBJECTS:
        await intents.post_text(text)
    await intents.post_text(" " * (2 * intents.T.count("body_max_bytes")))
    for body in refusals.bodies(intents).values():
        await intents.post(body)


@verifies("IN-PHASE-08", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1, waits="give_up")
async def test_the_conflict_of_phase_1_is_documented(intents: Intents) -> None:
    _promised(intents)
    async with _documented(intents, 2):
        session = await intents.running()
        for profile in intents.profiles[:2]:
            await intents.start(session.target, profile)


@verifies("IN-QUEUE-07", isolation="disruptive", nodes=ONE_OF_EACH, waits="3*store_fail_answer")
async def test_the_answers_without_a_store_are_documented(intents: Intents, faults: Faults) -> None:
    _promised(intents)
    async with faults.during("cut", f"{intents.apis[0]}-redis"), _documented(intents, 2):
        await intents.start(intents.channel())
        await intents.poll(str(uuid.uuid4()))
        await intents.call(_list(), intents.bearer("admin"))
        await intents.call(READINESS, NOBODY)
        await intents.call(HEALTH, NOBODY)
