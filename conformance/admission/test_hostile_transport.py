"""Broken, slow and unfinished HTTP: whatever the bytes, the node keeps serving, and only whole requests count."""

import asyncio
import json

from holdfast.check import raw_http
from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import rawtcp
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.wire import client_error, refused, success
from holdfast.conformance.shared.wire import cut_off, status

HANGING = 20
PIECES = 8
# What HTTP has for requests of a form or version that a server does not know.
NOT_HTTP = (501, 505)


def _connect(arena: Instance, character: Character, **headers: str) -> tuple[bytes, bytes]:
    """Returns head and body of a valid attempt, as the target's dialect spells it."""
    request = arena.request(character.id)
    body = json.dumps(request.body).encode()
    sent = {"Authorization": f"Bearer {character.user.bearer}", "Content-Length": str(len(body)), **headers}
    return raw_http.request("POST", request.path, sent), body


@verifies("AD-ADMIT-06")
async def test_broken_requests_are_refused_or_cut_off(admission: Admission) -> None:
    """Bytes that are no request have no caller to answer with a code: a bare error or no answer is legal.

    A server may also make sense of some of them, such as a line without a version; none names a user, so it refuses.
    """
    async with bystanders(admission) as present:
        path = f"/instances/{present.arena.id}/connect"
        for head in raw_http.BROKEN_HEADS:
            answer = await rawtcp.exchange(admission, [head.format(path=path).encode("latin-1")], last=True)
            legal = (cut_off(), client_error(), status(*NOT_HTTP), refused())
            with admission.context.collect():
                expect(answer, *legal, why=f"a request that starts {_shown(head)}")


def _shown(head: str) -> str:
    return json.dumps(head[:80])


@verifies("AD-ADMIT-06")
async def test_headers_that_contradict_the_request_change_nothing(admission: Admission) -> None:
    async with bystanders(admission) as present:
        own = await admission.characters(3)
        odd = [
            {"Authorization": "Bearer x\r\nAuthorization: Bearer y"},
            {"X-HTTP-Method-Override": "DELETE", "Authorization": "Bearer x"},
            {"Expect": "the-impossible", "Authorization": "Bearer x"},
        ]
        for character, headers in zip(own, odd, strict=True):
            head, body = _connect(present.arena, character, **headers)
            answer = await rawtcp.exchange(admission, [head + body])
            said = ", ".join(f"{name}: {value}" for name, value in headers.items())
            expect(answer, cut_off(), client_error(), refused(), why=f"with {json.dumps(said)}")


@verifies("AD-ADMIT-06")
async def test_an_unfinished_request_is_no_attempt(admission: Admission) -> None:
    arena = await admission.instance()
    for part in (0.0, 0.5, 1.0):
        character = await admission.character()
        _, body = _connect(arena, character)
        head, _ = _connect(arena, character, **{"Content-Length": str(len(body) + 1)})
        await rawtcp.exchange(admission, [head, body[: int(len(body) * part)]], break_off=True)

        expect(await arena.status(character), status(404), why=f"{part:.0%} of a body that never came")
        with admission.arranging("AD-ADMIT-01"):
            expect(await arena.connect(character), success(), why="control: the whole request")


@verifies("AD-ADMIT-06", waits="wait_tolerance")
async def test_slow_clients_are_served_and_hold_nobody_up(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(room=50)
    slow, *hanging = await admission.characters(1 + HANGING)
    head, body = _connect(arena, slow)
    step = -(-len(body) // PIECES)
    pieces = [head, *(body[start : start + step] for start in range(0, len(body), step))]
    held = [admission.beside(_hang(admission, arena, character)) for character in hanging]
    dribble = admission.beside(rawtcp.exchange(admission, pieces, pause=T.wait_tolerance / PIECES))

    for character in await admission.characters(3):
        answer = await arena.connect(character)
        expect(answer, success(), why="while others hang")
        sent, received = Moment(answer.sent, answer.sent), Moment(answer.received, answer.received)
        T.at_most("prompt", since=sent, seen=received, what="an attempt beside them")
    expect(await dribble, success(), why="a body that came in small pieces")
    await asyncio.gather(*held)
    expect(await arena.status(hanging[0]), status(404), why="a request that was never finished")


async def _hang(admission: Admission, arena: Instance, character: Character) -> None:
    head, body = _connect(arena, character)
    await rawtcp.exchange(admission, [head, body[:10], b""], pause=admission.T.wait_tolerance, break_off=True)
