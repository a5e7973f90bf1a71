"""Broken, slow and unfinished requests: the API keeps serving, and only whole ones count."""

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from urllib.parse import urlsplit

from holdfast.check import raw_http
from holdfast.check.finding import Finding, expect
from holdfast.check.no_answer import how_it_ended
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.bystander import bystander
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import accepted, ended_busy, refused, shown
from holdfast.conformance.shared.http import any_certificate
from holdfast.conformance.shared.wire import cut_off, status

HANGING = 20
PIECES = 8
# What HTTP has for requests of a form or version that a server does not know.
NOT_HTTP = (501, 505)
# Headers that say something else than the rest of the request.
CONTRADICTIONS = {
    "two credentials": {"Authorization": "Bearer x\r\nAuthorization: Bearer y"},
    "another method": {"X-HTTP-Method-Override": "GET", "Authorization": "Bearer x"},
    "an expectation": {"Expect": "the-impossible", "Authorization": "Bearer x"},
}


def _start(
    intents: Intents, ref: str, profile: str, *, extra: int = 0, headers: Mapping[str, str] | None = None
) -> tuple[bytes, bytes]:
    """Returns head and body of a valid start; its Content-Length promises `extra` bytes that never come."""
    body = json.dumps(intents.start_body(ref, profile)).encode()
    said = {"Authorization": intents.bearer(), "Content-Length": str(len(body) + extra), **(headers or {})}
    return raw_http.request("POST", wire.INTENTS, said), body


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_broken_requests_are_refused_or_cut_off(intents: Intents) -> None:
    """Bytes that are no request have no caller to answer with a code: a bare refusal or no answer is legal."""
    async with bystander(intents):
        for head in raw_http.BROKEN_HEADS:
            answer = await intents.send_raw([head.format(path=wire.INTENTS).encode("latin-1")], last=True)
            with intents.context.collect():
                legal = (status(*range(400, 500), *NOT_HTTP), cut_off())
                expect(answer, *legal, why=f"a request that starts {plain(head[:80])}")


@verifies("IN-AUTH-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_headers_that_contradict_the_request_let_nobody_in(intents: Intents) -> None:
    async with bystander(intents):
        for what, headers in CONTRADICTIONS.items():
            head, body = _start(intents, intents.channel(), intents.profiles[0], headers=headers)
            answer = await intents.send_raw([head + body])
            expect(answer, refused(*range(400, 500)), cut_off(), why=what)


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, waits="2*quiet_watch + 2*give_up")
async def test_an_unfinished_request_is_no_intent(intents: Intents, T: SpecTime) -> None:
    """A start that counted would hold the channel, and another profile of it would be rejected as busy."""
    first, second = intents.profiles[:2]
    for part in (0.0, 0.5):
        ref = intents.channel()
        head, body = _start(intents, ref, first, extra=1)
        await intents.send_raw([head, body[: int(len(body) * part)]], break_off=True)
        await T.sleep(T.quiet_watch, "a session of what was not finished")
        other = await intents.begin(ref, second)
        running = shown(*intents.running_states)
        expect(await intents.decided(other), running, why=f"the channel after {part:.0%} of a start in another profile")
        await intents.stopped(other)
    await _counts_when_whole(intents)


async def _counts_when_whole(intents: Intents) -> None:
    """Shows that a start that is written the same way holds its channel once it is whole."""
    ref, (first, second) = intents.channel(), intents.profiles[:2]
    answer = await intents.send_raw(list(_start(intents, ref, first)))
    with intents.context.arranging("IN-QUEUE-04"):
        expect(answer, accepted(), why="control: the whole request")
    holder = Session(answer.session_id, ref, first, answer)
    await intents.ready(holder)
    with intents.context.arranging("IN-BUSY-02"):
        rival = await intents.begin(ref, second)
        expect(await intents.decided(rival), ended_busy(), why="control: another profile of it")


@verifies("IN-QUEUE-04", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_slow_callers_are_served_and_hold_nobody_up(intents: Intents, T: SpecTime) -> None:
    profile = intents.profiles[0]
    async with bystander(intents) as session:
        await intents.parallel([partial(_hang, intents)] * HANGING)
        head, body = _start(intents, session.target, session.profile or profile)
        step = -(-len(body) // PIECES)
        pieces = [head, *(body[start : start + step] for start in range(0, len(body), step))]
        dribble = intents.beside(intents.send_raw(pieces, pause=T.store_latency))
        for _ in range(3):
            answer = await intents.start(session.target, session.profile)
            expect(answer, accepted(session.id), why=f"beside {HANGING} callers that hang")
            sent, received = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
            T.at_most("accept_fast", since=sent, seen=received, what="the answer to a start beside them")
        expect(await dribble, accepted(session.id), why="a start that came in small pieces")


async def _hang(intents: Intents) -> None:
    """Connects, sends a part of a start and nothing more until the check ends."""
    place = urlsplit(intents.url())
    tls = any_certificate() if place.scheme == "https" else None
    try:
        _, writer = await asyncio.open_connection(place.hostname, place.port, ssl=tls)
    except OSError as error:
        raise Finding([f"room for {HANGING} callers"], how_it_ended(error), late=True) from error
    intents.context.stack.callback(writer.transport.abort)
    head, body = _start(intents, intents.channel(), intents.profiles[0])
    writer.write(head + body[: len(body) // 2])
    await writer.drain()
