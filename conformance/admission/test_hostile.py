"""Hostile requests (fills seed §7, §11): each gets the spec's refusal, never a server error, never a changed state."""

import json
from collections.abc import Iterable
from typing import Any

from hypothesis import strategies

from holdfast.bridge import Call, in_thread
from holdfast.check import verifies
from holdfast.conformance.admission import rawtcp, wire
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.generated import try_examples
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.wire import Answer, Request, coded, refused, status, success, turned_away
from holdfast.finding import expect

NESTED = 5_000
# Above Python's own limit for turning digits into a number, which is where servers stumble.
DIGITS = "9" * 5_000
OVERSIZED = 10_000_000
EXAMPLES = 120

# Not a JSON object with a character in it, however it is read.
NO_OBJECT = [
    b"", b" ", b"{", b"}", b"{}", b"null", b"true", b"42", b'"text"', b"[]", b"[{}]", b"{'a': 1}", b"NaN", b"<x/>",
    b"\x00", b"\xff\xfe{}", b"characterId=1", b'{"characterId"}', b'{"characterId": "\xc3\x28"}', DIGITS.encode(),
    b'{"characterId": "' + b"a" * 100, b"[" * NESTED, b"[" * NESTED + b"]" * NESTED,
]  # fmt: skip

# What may stand for characterId, as JSON text, and is no character.
NO_CHARACTER = [
    "1", "true", "1.5", "-1", "1e999", "NaN", "[]", "{}", '["x"]', '{"$ne": null}', '""', "null", '"*"', '"a:b"',
    '"💥"', '"\\u0000"', '"\\ud800"', '"../x"', '"\\r\\nSET x 1"', DIGITS, f'"{"a" * 30_000}"',
    "[" * NESTED + "]" * NESTED,
]  # fmt: skip
NO_BUILD = ["1", "true", "[]", "{}", '"\\u0000"', '"\\ud800"', DIGITS, f'"{"a" * 30_000}"']
NO_TOKEN = [*NO_BUILD, '"x"', '"*"']

# What may stand for an instance id in the path, as it goes over the wire; the mark would show in a key name.
MARK = "evil"
NO_INSTANCE = [
    "evil%40id%2A", "evil%00", "evil%00b", "..%2F..%2Fevil", "evil%2Fb", "evil%0d%0aX-Evil:1", "evil%20b", "evil%ff%fe",
    "evil%F0%9F%92%A5", "session:char:evil", "evil*", "evil" * 1_200, "evil%", "evil%zz", "evil{}", "evil;b", "evil?b",
    "", "..", "%2e%2e", "%00",
]  # fmt: skip

TYPES = [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json; charset=x",
    "application/octet-stream", "application/json; " + "a" * 1_000, "/", ";",
]  # fmt: skip

NO_CREDENTIALS = [
    "InvalidFormat", "Bearer", "Bearer ", "Bearer null", "Bearer hf1..", "Bearer hf1.u.0", "Bearer hf1.u." + "0" * 64,
    "Bearer " + "a" * 5_000, "Bearer \udcff\udcfe", "Bearer ..", "Bearer {}", "Basic dTpw", "Negotiate x", ",",
]  # fmt: skip


def _said(user: User | None, **headers: str) -> dict[str, str]:
    credentials = {"Authorization": f"Bearer {user.bearer}"} if user else {}
    return {"Content-Type": "application/json", **credentials, **headers}


def _body(**texts: str) -> bytes:
    """A JSON object with these JSON texts pasted in as they are."""
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}").encode("utf-8")


async def _attempt(admission: Admission, arena: Instance, body: bytes, user: User | None = None) -> Answer:
    said = _said(user or admission.user())
    return await admission.raw("POST", f"/instances/{arena.id}/connect", data=body, headers=said)


async def _all_coded(admission: Admission, arena: Instance, bodies: Iterable[bytes], user: User | None = None) -> None:
    for body in bodies:
        expect(await _attempt(admission, arena, body, user), coded(), why=f"the body {body[:60]!r}, {len(body)} bytes")


def _attempts_without_subject(build: str) -> list[bytes]:
    return [*NO_OBJECT, *(_body(characterId=text, clientBuild=json.dumps(build)) for text in NO_CHARACTER)]


@verifies("AD-ADMIT-05")
@verifies("AD-ADMIT-06")
async def test_a_body_without_a_character_in_it_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        await _all_coded(admission, present.arena, _attempts_without_subject(admission.build))


@verifies("AD-ADMIT-05")
async def test_fields_of_a_wrong_kind_get_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        own = await admission.characters(len(NO_BUILD) + len(NO_TOKEN))
        builds = [{"clientBuild": text} for text in NO_BUILD]
        tokens = [{"clientBuild": json.dumps(admission.build), "reconnectionToken": text} for text in NO_TOKEN]
        for character, texts in zip(own, [*builds, *tokens], strict=True):
            body = _body(characterId=json.dumps(character.id), **texts)
            await _all_coded(admission, present.arena, [body], character.user)


@verifies("AD-ADMIT-05")
async def test_a_body_of_another_content_type_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        for kind in TYPES:
            said = _said(admission.user()) | {"Content-Type": kind}
            path = f"/instances/{present.arena.id}/connect"
            answer = await admission.raw("POST", path, data=b"characterId=1", headers=said)
            expect(answer, coded(), why=f"Content-Type: {kind[:60]}")


@verifies("AD-ADMIT-05")
async def test_ten_megabytes_are_refused_or_cut_off(admission: Admission) -> None:
    """A server may end the connection instead of reading on, and then nobody hears its answer."""
    async with bystanders(admission) as present:
        character = await admission.character()
        sound = _body(characterId=json.dumps(character.id), clientBuild=json.dumps(admission.build))
        bodies = {"connect": sound[:-1] + b" " * OVERSIZED + b"}", "disconnect": b"[" * OVERSIZED}
        for call, body in bodies.items():
            path = f"/instances/{present.arena.id}/{call}"
            answer = await _by_hand(admission, "POST", path, _said(character.user), body)
            expect(answer, coded(), status(400, 413), status(0), why="a body of ten megabytes")


@verifies("AD-ADMIT-06")
async def test_a_name_given_twice_does_not_smuggle_a_foreign_character_in(admission: Admission) -> None:
    arena, build = await admission.instance(), json.dumps(admission.build)
    victim = await admission.character()
    for order in (1, -1):
        own = await admission.character()
        ids = [json.dumps(character.id) for character in (own, victim)][::order]
        body = f'{{"characterId": {ids[0]}, "clientBuild": {build}, "characterId": {ids[1]}}}'.encode()
        expect(await _attempt(admission, arena, body, own.user), success(), coded())
        expect(await arena.status(victim), status(404), why="the foreign character")
    expect(await arena.connect(victim), success(), why="control: the foreign character is nowhere in session")


@verifies("AD-ADMIT-06")
async def test_an_instance_id_outside_the_pattern_is_refused(admission: Admission) -> None:
    character = await admission.character()
    for segment in NO_INSTANCE:
        for method, rest, body in _calls(character, admission.build):
            user = admission.user() if rest == "connect" else character.user
            answer = await _by_hand(admission, method, f"/instances/{segment}/{rest}", _said(user), body)
            legal = [refused("INVALID_INSTANCE")] if rest == "connect" else [turned_away()]
            expect(answer, *legal, status(*range(400, 500)), why=f"{method} /instances/{segment[:60]}/{rest}")
    expect(await (await admission.instance()).connect(character), success(), why="control: a sound id")


def _calls(character: Character, build: str) -> list[tuple[str, str, bytes]]:
    return [
        ("POST", "connect", json.dumps({"characterId": character.id, "clientBuild": build}).encode()),
        ("GET", f"queue/status?characterId={character.id}", b""),
        ("POST", "disconnect", json.dumps({"sessionId": character.id}).encode()),
        ("DELETE", f"queue?characterId={character.id}", b""),
        ("DELETE", f"connect?replaceToken={character.id}", b""),
    ]


async def _by_hand(admission: Admission, method: str, path: str, said: dict[str, str], body: bytes = b"") -> Answer:
    """Written by hand, because an HTTP library would mend the path and refuse the headers."""
    return await rawtcp.exchange(admission, [rawtcp.request(method, path, said, body)])


@verifies("AD-ADMIT-06")
async def test_hostile_credentials_are_no_credentials(admission: Admission) -> None:
    async with bystanders(admission) as present:
        other = admission.user()
        forged = [f"Bearer {other.bearer[:-1]}", f"Bearer {other.bearer}x", f"Bearer {other.bearer}.{other.bearer}"]
        body = json.dumps({"characterId": present.waiting.id, "clientBuild": admission.build}).encode()
        for value in [*NO_CREDENTIALS, *forged]:
            said = _said(None, Authorization=value)
            answer = await _by_hand(admission, "POST", f"/instances/{present.arena.id}/connect", said, body)
            # Bytes outside ASCII may already fail to be a header.
            or_bad_header = [] if value.isascii() else [status(400)]
            expect(answer, refused("NOT_AUTHENTICATED"), *or_bad_header, why=f"Authorization: {value[:60]!a}")


@verifies("AD-ADMIT-06")
async def test_the_other_calls_refuse_what_they_can_not_read(admission: Admission) -> None:
    async with bystanders(admission) as present:
        base, said = f"/instances/{present.arena.id}", _said(present.waiting.user)
        for body in NO_OBJECT:
            expect(
                await _by_hand(admission, "POST", f"{base}/disconnect", said, body), turned_away(), why=str(body[:60])
            )
        for text in NO_CHARACTER:
            body = _body(sessionId=text, reason=text)
            expect(await _by_hand(admission, "POST", f"{base}/disconnect", said, body), turned_away(), why=text[:60])
        for value in ("", "x", "%00", "*", "%ff", "a" * 5_000, "x&characterId=y&replaceToken=z", "[]"):
            for method, call in (
                ("GET", "queue/status?characterId="),
                ("DELETE", "queue?characterId="),
                ("DELETE", "connect?replaceToken="),
            ):
                answer = await _by_hand(admission, method, f"{base}/{call}{value}", said)
                expect(answer, turned_away(), why=f"{method} {call}{value[:60]}")


@verifies("AD-ADMIT-06")
async def test_administration_refuses_bad_values_and_bad_tokens(admission: Admission) -> None:
    async with bystanders(admission) as present:
        arena, character = present.arena, present.waiting
        for request in _bad_settings(arena.id, character.id):
            answer = await admission.call(request, None, headers=admission.admin_headers)
            expect(answer, turned_away(), why=request.describe())
        said = _said(None) | admission.admin_headers
        for body in NO_OBJECT:
            for method, path in (
                ("PUT", f"/admin/characters/{character.id}"),
                ("POST", f"/admin/drain-mode/instance/{arena.id}"),
            ):
                expect(
                    await _by_hand(admission, method, path, said, body), turned_away(), why=f"the body {body[:60]!r}"
                )
        for headers in ({}, {"X-Admin-Token": ""}, {"X-Admin-Token": "x"}, {"X-Admin-Token": "a" * 5_000}):
            answer = await admission.call(wire.put_instance(arena.id, capacity=50), None, headers=headers)
            expect(answer, status(401, 403), why="administration without its token")


def _bad_settings(arena: str, character: str) -> list[Request]:
    drain = f"/admin/drain-mode/instance/{arena}"
    numbers: list[Any] = [-1, "x", 1.5, True, [], {}, 1e300, 10**30]
    texts: list[Any] = ["", 5, [], {}]
    flags: list[Any] = ["yes", 1, [], {}]
    return [
        *(wire.put_instance(arena, capacity=value) for value in numbers),
        *(wire.put_instance(arena, capacity=5, state=value) for value in [*texts, "open"]),
        *(wire.put_character(character, userId=value, suspended=False) for value in texts),
        *(wire.put_character(character, userId="thief", suspended=value) for value in flags),
        *(Request("POST", drain, body={"enabled": value}) for value in flags),
        Request("POST", drain, body={"enabled": True, "ttlSeconds": -1}),
        wire.put_instance("evil id", capacity=5),
        wire.put_character("evil id", userId="thief", suspended=False),
    ]


def _json_bodies() -> strategies.SearchStrategy[Any]:
    leaves = strategies.one_of(
        strategies.none(),
        strategies.booleans(),
        strategies.integers(),
        strategies.floats(),
        strategies.text(max_size=20),
    )
    values = strategies.recursive(
        leaves,
        lambda inner: strategies.lists(inner, max_size=4) | strategies.dictionaries(strategies.text(max_size=8), inner),
        max_leaves=8,
    )
    known = strategies.fixed_dictionaries(
        {"characterId": values}, optional={"clientBuild": values, "reconnectionToken": values, "timeout": values}
    )
    return values | known


@verifies("AD-ADMIT-05")
async def test_generated_json_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:

        def generate(call: Call) -> None:
            def gets_a_code(value: Any) -> None:
                answer = call(_attempt(admission, present.arena, json.dumps(value).encode()))
                expect(answer, coded(), why=repr(value)[:200])

            try_examples(admission, _json_bodies(), EXAMPLES, gets_a_code)

        await in_thread(generate, deadline=admission.T.recovery_never)


@verifies("AD-ADMIT-06", part=2, isolation="quiet")
async def test_hostile_requests_leave_redis_as_it_was(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    inside, waiting = await admission.characters(2)
    await arena.admit(inside)
    await arena.enqueue(waiting)
    before = await keys.snapshot("session:*", "queue:*", "replacement:*")

    await _all_coded(admission, arena, _attempts_without_subject(admission.build))
    for segment in [*NO_INSTANCE, "evil-unknown"]:
        for method, rest, body in _calls(waiting, admission.build):
            user = admission.user() if rest == "connect" else waiting.user
            await _by_hand(admission, method, f"/instances/{segment}/{rest}", _said(user), body)

    expect(await keys.snapshot("session:*", "queue:*", "replacement:*"), before, why="records of sessions and queues")
    marked = [key for key in await keys.snapshot("*") if MARK in key]
    expect(marked, [], why="keys built from an id that is none")
