"""Hostile requests (seed 3.1 steps 1-2, 3.4): each is refused or taken as the document says, and none does any harm.

For a caller who may post intents the document leaves two answers, 202 and 400. Where it does not say which (a channel
with a strange name, a field that the public implementation limits), both are legal, and nothing else is. A session that
runs before must run after, and a new one can be started.
"""

import gzip
import json
import uuid
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from holdfast.check import raw_http
from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import demand, expect
from holdfast.check.generated import json_values, try_examples
from holdfast.check.plain import plain
from holdfast.check.verifies import verifies
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.bystander import bystander
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import Answer, accepted, refused
from holdfast.conformance.shared.hostile import DEEP, DIGITS, OVERSIZED, TYPES, no_objects
from holdfast.conformance.shared.wire import cut_off, status

EXAMPLES = 60

# JSON texts in the place of a field that has to be a text.
NO_TEXTS = [
    "1", "true", "1.5", "-1", "1e999", "[]", "{}", '["x"]', '{"$ne": null}', DIGITS, DEEP,
]  # fmt: skip
# Texts that make trouble in keys, logs and headers. `{}` is a channel of the check's own.
ODD_TEXTS = [
    '"{}*"', '"{}:b"', '"{}💥"', '"{}\\u0000"', '"{}\\ud800"', '"{}/../../x"', '"{}\\r\\nSET x 1"', '"{}\\u202e"',
    '"{} %s %d"', '"{}$(id)"', '"{}\' OR 1=1 --"',
]  # fmt: skip
LONG = 30_000
# In the place of startMs: no integers that are not negative.
NO_OFFSETS = ["-1", "1.5", "true", '"1"', "[]", "{}", "1e999", "-9999999999999999999"]
# Integers, and yet a server may find them too large.
HUGE_OFFSETS = ["9007199254740993", "1" + "0" * 400, DIGITS]
NO_UUIDS = ["5", "true", "[]", "{}", '""', '"x"', '"../../x"', '"*"', '"\\u0000"', '"' + "a" * 10_000 + '"']
# Limited by the public implementation only.
ODD_CORRELATIONS = ['"a\\r\\nX-Evil: 1"', '"' + "a" * 5_000 + '"', '"💥"', '"\\ud800"', '""', "5", "null"]

NO_CREDENTIALS = [
    "InvalidFormat", "Bearer", "Bearer ", "Bearer null", "Bearer undefined", "Bearer *", "Bearer ..", "Bearer {}",
    "Basic dTpw", "Negotiate x", ",", "Digest username=x",
]  # fmt: skip
# No session has such an id; as they stand in a path.
NO_SESSIONS = [
    "evil%40id%2A", "evil%00", "..%2F..%2Fevil", "evil%2Fb", "evil%0d%0aX-Evil:1", "evil%20b", "evil%ff%fe", "evil*",
    "evil%F0%9F%92%A5", "session:evil", "evil%zz", "evil{}", "evil;b", "%00", "a" * 5_000,
]  # fmt: skip


async def _send(intents: Intents, body: bytes, **headers: str) -> Answer:
    """Posts these bytes; a client library would correct some of the headers and refuse others."""
    said = {"Authorization": intents.bearer(), **headers}
    return await intents.send_raw([raw_http.request("POST", wire.INTENTS, said, body)])


def _start(intents: Intents, **texts: str) -> bytes:
    """Returns the body of a valid start with these JSON texts in the place of its fields."""
    fields = {name: json.dumps(value) for name, value in intents.start_body(intents.channel()).items()}
    return _written({**fields, **texts})


def _written(fields: Mapping[str, str]) -> bytes:
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}").encode()


async def _try_all(intents: Intents, bodies: Iterable[bytes], *legal: Any) -> None:
    """Posts each body and judges the answer; sessions that come of it are stopped at once."""

    async def attempt(body: bytes) -> None:
        answer = await _send(intents, body)
        with intents.context.collect():
            expect(answer, *legal, why=f"{_shown(body)}, {len(body)} bytes")
        await _end(intents, answer)

    await intents.parallel([partial(attempt, body) for body in bodies], at_once=8)


async def _end(intents: Intents, answer: Answer) -> None:
    """Stops the session of an answer, if there is one."""
    if answer.session_id:
        await intents.stopped(Session(answer.session_id, "", None, answer))


def _shown(body: bytes) -> str:
    return plain(body[:80].decode("utf-8", "backslashreplace"))


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_whatever_is_no_json_object_is_refused(intents: Intents) -> None:
    async with bystander(intents):
        await _try_all(intents, no_objects("serviceRef"), refused(400))


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_what_only_generous_readers_take_for_json_is_taken_or_refused(intents: Intents) -> None:
    sound = _start(intents)
    further = (b', "type": "stream.start"}', b', "correlationId": NaN}', b', "params": {"x": "\xc3\x28"}}')
    generous = [sound + b" {}", b"\xef\xbb\xbf" + sound, sound.decode().encode("utf-16")]
    async with bystander(intents):
        await _try_all(intents, [*generous, *(sound[:-1] + more for more in further)], accepted(), refused(400))


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_body_of_another_content_type_is_refused(intents: Intents) -> None:
    async with bystander(intents):
        for kind in TYPES:
            answer = await _send(intents, b"serviceRef=1", **{"Content-Type": kind})
            with intents.context.collect():
                expect(answer, refused(400, 415), why=f"no JSON, of type {kind[:40]}")


@verifies("IN-VALID-01", part=2, isolation="quiet", nodes=ONE_OF_EACH, waits="2*quiet_watch")
async def test_hostile_bodies_leave_nothing_behind(intents: Intents) -> None:
    bodies = [*no_objects("serviceRef"), *(_start(intents, serviceRef=text) for text in NO_TEXTS)]
    await intents.leaves_no_trace(partial(_try_all, intents, bodies, refused(400)), "bodies that are no intents")


@verifies("IN-VALID-02", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_channel_and_profile_of_a_wrong_kind_are_refused(intents: Intents) -> None:
    bodies = [_start(intents, serviceRef=text) for text in [*NO_TEXTS, "null", '"\\n"', '" \\t "']]
    if "profileID" in intents.start_body(intents.channel()):
        bodies += [_start(intents, profileID=text) for text in [*NO_TEXTS, '"a|b"', '"../x"', '"\\u0000"']]
    async with bystander(intents):
        await _try_all(intents, bodies, refused(400))


@verifies("IN-VALID-02", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_channel_with_a_strange_name_is_taken_or_refused(intents: Intents) -> None:
    odd = [text.replace("{}", intents.channel()) for text in [*ODD_TEXTS, f'"{{}}{"a" * LONG}"']]
    async with bystander(intents):
        await _try_all(intents, [_start(intents, serviceRef=text) for text in odd], accepted(), refused(400))


@verifies("IN-VALID-03", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_an_offset_that_is_none_is_refused(intents: Intents) -> None:
    def at(text: str) -> bytes:
        fields = {name: json.dumps(value) for name, value in intents.vod_body(intents.recording()).items()}
        return _written({**fields, "startMs": text})

    async with bystander(intents):
        await _try_all(intents, map(at, NO_OFFSETS), refused(400))
        await _try_all(intents, map(at, HUGE_OFFSETS), accepted(), refused(400))


@verifies("IN-VALID-04", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_stop_of_what_is_no_session_is_refused(intents: Intents) -> None:
    fields = {name: json.dumps(value) for name, value in intents.stop_body(str(uuid.uuid4())).items()}
    async with bystander(intents):
        await _try_all(intents, (_written({**fields, "sessionId": text}) for text in NO_UUIDS), refused(400))


@verifies("IN-VALID-04", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_a_strange_correlation_is_taken_or_refused_and_gets_into_no_header(intents: Intents) -> None:
    async with bystander(intents):
        for text in ODD_CORRELATIONS:
            answer = await _send(intents, _start(intents, correlationId=text))
            why = f"correlationId {text[:40]}"
            expect(answer, accepted(), refused(400), why=why)
            demand("X-Evil" not in answer.headers, "no header of the caller's", answer.describe(), why)
            await _end(intents, answer)


@verifies("IN-VALID-04", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_ten_megabytes_do_no_harm(intents: Intents) -> None:
    """A server may end the connection instead of reading on, and then its answer is lost."""
    padded = _start(intents, params=json.dumps({"pad": "x" * OVERSIZED}))
    packed = gzip.compress(padded)
    async with bystander(intents):
        for body in (padded, b"[" * OVERSIZED, b" " * OVERSIZED):
            expect(await _send(intents, body), refused(400, 413), cut_off(), why=f"{len(body)} bytes")
        answer = await _send(intents, packed, **{"Content-Encoding": "gzip"})
        # Whether the limit is on what is sent or on what it grows to is not said.
        legal = (accepted(), refused(400, 413, 415), cut_off())
        expect(answer, *legal, why=f"{len(packed)} bytes that grow to {len(padded)}")
        await _end(intents, answer)


@verifies("IN-AUTH-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_hostile_credentials_are_no_credentials(intents: Intents) -> None:
    token, body = intents.credential("write"), _start(intents)
    forged = [f"Bearer {each}" for each in (token[:-1], f"{token}x", token.swapcase()) if each != token]
    odd = ["Bearer \udcff\udcfe", "Bearer " + "a" * 5_000]
    async with bystander(intents):
        for said in [*NO_CREDENTIALS, *forged]:
            answer = await _send(intents, body, Authorization=said)
            expect(answer, refused(401), why=f"Authorization: {plain(said)}")
        for said in odd:  # HTTP may refuse the header itself
            answer = await _send(intents, body, Authorization=said)
            expect(answer, refused(400, 401, 431), why=f"Authorization: {plain(said[:40])}")


@verifies("IN-QUEUE-01", isolation="quiet", nodes=ONE_OF_EACH, waits="give_up")
async def test_an_id_that_no_session_can_have_is_not_found(intents: Intents) -> None:
    said = {"Authorization": intents.reader}
    async with bystander(intents):
        for id_ in NO_SESSIONS:
            answer = await intents.send_raw([raw_http.request("GET", f"{wire.SESSIONS}/{id_}", said)])
            with intents.context.collect():
                expect(answer, status(*range(300, 500)), why=f"{wire.SESSIONS}/{id_[:40]}")
                demand("X-Evil" not in answer.headers, "no header of the caller's", answer.describe(), id_[:40])


@verifies("IN-VALID-01", isolation="quiet", nodes=ONE_OF_EACH, busy=True, waits="give_up")
async def test_generated_json_is_taken_or_refused(intents: Intents) -> None:
    names = ("serviceRef", "profileID", "type", "recordingId", "startMs", "sessionId", "params", "correlationId")
    async with bystander(intents):

        def generate(call: Call) -> None:
            def is_decided(value: Any) -> None:
                legal = (accepted(), refused(400)) if isinstance(value, dict) else (refused(400),)
                call(_try_all(intents, [json.dumps(value).encode()], *legal))

            try_examples(intents.context.seed, json_values(*names), EXAMPLES, is_decided)

        await in_thread(generate, deadline=intents.T.give_up)
