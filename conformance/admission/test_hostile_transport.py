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
from holdfast.conformance.admission.wire import success
from holdfast.conformance.shared.wire import status

HANGING = 20
PIECES = 8
CLIENT_ERROR = tuple(range(400, 500))


def _connect(admission: Admission, arena: Instance, character: Character, **headers: str) -> tuple[bytes, bytes]:
    """Returns head and body of a valid attempt."""
    body = json.dumps({"characterId": character.id, "clientBuild": admission.build}).encode()
    sent = {"Authorization": f"Bearer {character.user.bearer}", "Content-Length": str(len(body)), **headers}
    return raw_http.request("POST", f"/instances/{arena.id}/connect", sent), body


@verifies("AD-ADMIT-06")
async def test_broken_requests_are_refused_or_cut_off(admission: Admission) -> None:
    """Bytes that are no request have no caller to answer with a code: a bare 4xx or no answer is legal."""
    async with bystanders(admission) as present:
        path = f"/instances/{present.arena.id}/connect"
        for head in raw_http.BROKEN_HEADS:
            answer = await rawtcp.exchange(admission, [head.format(path=path).encode("latin-1")], last=True)
            expect(answer, status(0, *CLIENT_ERROR), why=f"{head[:80]!r}")


@verifies("AD-ADMIT-06")
async def test_headers_that_contradict_the_request_change_nothing(admission: Admission) -> None:
    async with bystanders(admission) as present:
        own = await admission.characters(4)
        odd = [
            {"Authorization": "Bearer x\r\nAuthorization: Bearer y"},
            {"X-HTTP-Method-Override": "DELETE", "Authorization": "Bearer x"},
            {"Content-Encoding": "gzip"},
            {"Expect": "the-impossible", "Authorization": "Bearer x"},
        ]
        for character, headers in zip(own, odd, strict=True):
            head, body = _connect(admission, present.arena, character, **headers)
            answer = await rawtcp.exchange(admission, [head + body])
            expect(answer, status(0, 200, *CLIENT_ERROR), why=str(headers))
            assert answer.outcome not in {"success", "queued"}, f"let in with {headers}: {answer.describe()}"


@verifies("AD-ADMIT-06")
async def test_an_unfinished_request_is_no_attempt(admission: Admission) -> None:
    arena = await admission.instance()
    for part in (0.0, 0.5, 1.0):
        character = await admission.character()
        _, body = _connect(admission, arena, character)
        head, _ = _connect(admission, arena, character, **{"Content-Length": str(len(body) + 1)})
        await rawtcp.exchange(admission, [head, body[: int(len(body) * part)]], break_off=True)

        expect(await arena.status(character), status(404), why=f"{part:.0%} of a body that never came")
        expect(await arena.connect(character), success(), why="control: the whole request")


@verifies("AD-ADMIT-06", waits="wait_tolerance")
async def test_slow_clients_are_served_and_hold_nobody_up(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance(capacity=50)
    slow, *hanging = await admission.characters(1 + HANGING)
    head, body = _connect(admission, arena, slow)
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
    head, body = _connect(admission, arena, character)
    await rawtcp.exchange(admission, [head, body[:10], b""], pause=admission.T.wait_tolerance, break_off=True)
