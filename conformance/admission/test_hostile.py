"""Hostile requests (fills seed §7, §11): each gets the spec's refusal, never a server error, never a changed state."""

import functools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.check import raw_http
from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import expect
from holdfast.check.generated import json_values, try_examples
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import rawtcp
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.wire import coded, refused, success, turned_away
from holdfast.conformance.shared.wire import status

# A hundred requests take a second, but longer on a machine that also runs other work.
WORK = "5*prompt"
DRAIN = "/admin/drain-mode/instance/{}"
NESTED = 5_000
# Above Python's own limit for turning digits into a number, at which servers tend to fail.
DIGITS = "9" * 5_000
OVERSIZED = 10_000_000
EXAMPLES = 60

# Not a JSON object with a character in it, however it is read.
NO_OBJECT = [
    b"", b" ", b"{", b"}", b"{}", b"null", b"true", b"42", b'"text"', b"[]", b"[{}]", b"{'a': 1}", b"NaN", b"<x/>",
    b"\x00", b"\xff\xfe{}", b"characterId=1", b'{"characterId"}', b'{"characterId": "\xc3\x28"}', DIGITS.encode(),
    b'{"characterId": "' + b"a" * 100, b"[" * NESTED, b"[" * NESTED + b"]" * NESTED,
]  # fmt: skip

# JSON texts in the place of characterId that name no character.
NO_CHARACTER = [
    "1", "true", "1.5", "-1", "1e999", "NaN", "[]", "{}", '["x"]', '{"$ne": null}', '""', "null", '"*"', '"a:b"',
    '"💥"', '"\\u0000"', '"\\ud800"', '"../x"', '"\\r\\nSET x 1"', DIGITS, f'"{"a" * 30_000}"',
    "[" * NESTED + "]" * NESTED,
]  # fmt: skip
NO_BUILD = ["1", "true", "[]", "{}", '"\\u0000"', '"\\ud800"', DIGITS, f'"{"a" * 30_000}"']
NO_TOKEN = [*NO_BUILD, '"x"', '"*"']

# Texts in the place of an instance id in the path, as sent; the mark would show in a key name.
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
    "Bearer " + "a" * 5_000, "Bearer ..", "Bearer {}", "Basic dTpw", "Negotiate x", ",",
]  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One hostile request, sent as raw bytes: an HTTP library would correct the path and refuse the headers."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def describe(self) -> str:
        return f"{self.method} {self.path[:80]} with {self.body[:60]!r}, {len(self.body)} bytes"


async def _try_all(admission: Admission, trials: Iterable[Trial], *legal: Any) -> None:
    async def attempt(trial: Trial) -> None:
        request = raw_http.request(trial.method, trial.path, trial.headers, trial.body)
        expect(await rawtcp.exchange(admission, [request]), *legal, why=trial.describe())

    await admission.parallel([functools.partial(attempt, trial) for trial in trials], at_once=8)


def _as(user: User | None, **headers: str) -> dict[str, str]:
    return {**({"Authorization": f"Bearer {user.bearer}"} if user else {}), **headers}


def _body(**texts: str) -> bytes:
    """Returns a JSON object with these JSON texts inserted as they are."""
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}").encode("utf-8")


def _attempt(admission: Admission, arena: Instance, body: bytes, user: User | None = None) -> Trial:
    """Returns an attempt, by a user of its own unless one is given, so that no lock hides the answer."""
    return Trial("POST", f"/instances/{arena.id}/connect", _as(user or admission.user()), body)


def _attempts_without_subject(admission: Admission, arena: Instance) -> list[Trial]:
    build = json.dumps(admission.build)
    bodies = [*NO_OBJECT, *(_body(characterId=text, clientBuild=build) for text in NO_CHARACTER)]
    return [_attempt(admission, arena, body) for body in bodies]


@verifies("AD-ADMIT-05")
@verifies("AD-ADMIT-06", waits=WORK)
async def test_a_body_without_a_character_in_it_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        await _try_all(admission, _attempts_without_subject(admission, present.arena), coded())


@verifies("AD-ADMIT-05")
async def test_fields_of_a_wrong_kind_get_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        builds = [{"clientBuild": text} for text in NO_BUILD]
        tokens = [{"clientBuild": json.dumps(admission.build), "reconnectionToken": text} for text in NO_TOKEN]
        own = await admission.characters(len(builds) + len(tokens))
        trials = [
            _attempt(admission, present.arena, _body(characterId=json.dumps(character.id), **texts), character.user)
            for character, texts in zip(own, [*builds, *tokens], strict=True)
        ]
        await _try_all(admission, trials, coded())


@verifies("AD-ADMIT-05")
async def test_a_body_of_another_content_type_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        path = f"/instances/{present.arena.id}/connect"
        said = [_as(admission.user(), **{"Content-Type": kind}) for kind in TYPES]
        await _try_all(admission, [Trial("POST", path, headers, b"characterId=1") for headers in said], coded())


@verifies("AD-ADMIT-05")
async def test_ten_megabytes_are_refused_or_cut_off(admission: Admission) -> None:
    """A server may end the connection instead of reading on, and then its answer is lost."""
    async with bystanders(admission) as present:
        character, base = await admission.character(), f"/instances/{present.arena.id}"
        sound = _body(characterId=json.dumps(character.id), clientBuild=json.dumps(admission.build))
        trials = [
            Trial("POST", f"{base}/connect", _as(character.user), sound[:-1] + b" " * OVERSIZED + b"}"),
            Trial("POST", f"{base}/disconnect", _as(character.user), b"[" * OVERSIZED),
        ]
        await _try_all(admission, trials, coded(), status(0, 400, 413))


@verifies("AD-ADMIT-06")
async def test_a_name_given_twice_does_not_smuggle_a_foreign_character_in(admission: Admission) -> None:
    arena, build = await admission.instance(), json.dumps(admission.build)
    victim = await admission.character()
    for order in (1, -1):
        own = await admission.character()
        ids = [json.dumps(character.id) for character in (own, victim)][::order]
        body = f'{{"characterId": {ids[0]}, "clientBuild": {build}, "characterId": {ids[1]}}}'.encode()
        await _try_all(admission, [_attempt(admission, arena, body, own.user)], success(), coded())
        expect(await arena.status(victim), status(404), why="the foreign character")
    expect(await arena.connect(victim), success(), why="control: the foreign character is nowhere in session")


@verifies("AD-ADMIT-06", busy=True, waits=WORK)
async def test_an_instance_id_outside_the_pattern_is_refused(admission: Admission) -> None:
    character, bad_request = await admission.character(), status(*range(400, 500))
    attempts = _attempts_at(admission, NO_INSTANCE, character)
    await _try_all(admission, attempts, refused("INVALID_INSTANCE"), bad_request)
    await _try_all(admission, _other_calls_at(NO_INSTANCE, character), turned_away(), bad_request)
    expect(await (await admission.instance()).connect(character), success(), why="control: a sound id")


def _attempts_at(admission: Admission, instances: Sequence[str], character: Character) -> list[Trial]:
    body = json.dumps({"characterId": character.id, "clientBuild": admission.build}).encode()
    return [Trial("POST", f"/instances/{id_}/connect", _as(admission.user()), body) for id_ in instances]


def _other_calls_at(instances: Sequence[str], character: Character) -> list[Trial]:
    calls = [
        ("GET", f"queue/status?characterId={character.id}", b""),
        ("POST", "disconnect", json.dumps({"sessionId": character.id}).encode()),
        ("DELETE", f"queue?characterId={character.id}", b""),
        ("DELETE", f"connect?replaceToken={character.id}", b""),
    ]
    said = _as(character.user)
    return [Trial(method, f"/instances/{id_}/{rest}", said, body) for id_ in instances for method, rest, body in calls]


@verifies("AD-ADMIT-06")
async def test_hostile_credentials_are_no_credentials(admission: Admission) -> None:
    async with bystanders(admission) as present:
        other = admission.user()
        forged = [f"Bearer {other.bearer[:-1]}", f"Bearer {other.bearer}x", f"Bearer {other.bearer}.{other.bearer}"]
        path = f"/instances/{present.arena.id}/connect"
        body = json.dumps({"characterId": present.waiting.id, "clientBuild": admission.build}).encode()
        readable = [Trial("POST", path, {"Authorization": value}, body) for value in [*NO_CREDENTIALS, *forged]]
        unreadable = [Trial("POST", path, {"Authorization": "Bearer \udcff\udcfe"}, body)]
        await _try_all(admission, readable, refused("NOT_AUTHENTICATED"))
        await _try_all(admission, unreadable, refused("NOT_AUTHENTICATED"), status(400))


@verifies("AD-ADMIT-06", waits=WORK)
async def test_the_other_calls_refuse_what_they_can_not_read(admission: Admission) -> None:
    async with bystanders(admission) as present:
        base, said = f"/instances/{present.arena.id}", _as(present.waiting.user)
        bodies = [*NO_OBJECT, *(_body(sessionId=text, reason=text) for text in NO_CHARACTER)]
        queries = [
            (method, f"{base}/{call}{value}")
            for value in ("", "x", "%00", "*", "%ff", "a" * 5_000, "x&characterId=y&replaceToken=z", "[]")
            for method, call in (
                ("GET", "queue/status?characterId="),
                ("DELETE", "queue?characterId="),
                ("DELETE", "connect?replaceToken="),
            )
        ]
        await _try_all(admission, [Trial("POST", f"{base}/disconnect", said, body) for body in bodies], turned_away())
        await _try_all(admission, [Trial(method, path, said) for method, path in queries], turned_away())


@verifies("AD-ADMIT-06", waits=WORK)
async def test_administration_refuses_bad_values_and_bad_tokens(admission: Admission) -> None:
    async with bystanders(admission) as present:
        arena, character = present.arena.id, present.waiting.id
        unreadable = [
            Trial(method, path, admission.admin_headers, body)
            for body in NO_OBJECT
            for method, path in (("PUT", f"/admin/characters/{character}"), ("POST", DRAIN.format(arena)))
        ]
        unsigned: list[dict[str, str]] = [{}, *({"X-Admin-Token": token} for token in ("", "x", "a" * 5_000))]
        await _try_all(admission, _bad_settings(arena, character, admission.admin_headers), turned_away())
        await _try_all(admission, unreadable, turned_away())
        sound = Trial("PUT", f"/admin/instances/{arena}", {}, _body(capacity="50"))
        await _try_all(admission, [replace(sound, headers=headers) for headers in unsigned], status(401, 403))


def _bad_settings(arena: str, character: str, said: Mapping[str, str]) -> list[Trial]:
    numbers = ["-1", '"x"', "1.5", "true", "[]", "{}", "1e300", DIGITS]
    texts = ['""', "5", "[]", "{}"]
    flags = ['"yes"', "1", "[]", "{}"]
    instance, registered, user = f"/admin/instances/{arena}", f"/admin/characters/{character}", '"thief"'
    calls = [
        *(("PUT", instance, _body(capacity=text)) for text in numbers),
        *(("PUT", instance, _body(capacity="5", state=text)) for text in [*texts, '"open"']),
        *(("PUT", registered, _body(userId=text, suspended="false")) for text in texts),
        *(("PUT", registered, _body(userId=user, suspended=text)) for text in flags),
        *(("POST", DRAIN.format(arena), _body(enabled=text)) for text in flags),
        ("POST", DRAIN.format(arena), _body(enabled="true", ttlSeconds="-1")),
        ("PUT", "/admin/instances/evil%20id", _body(capacity="5")),
        ("PUT", "/admin/characters/evil%20id", _body(userId=user, suspended="false")),
    ]
    return [Trial(method, path, said, body) for method, path, body in calls]


@verifies("AD-ADMIT-05", waits=WORK)
async def test_generated_json_gets_a_code(admission: Admission) -> None:
    bodies = json_values("characterId", "clientBuild", "reconnectionToken", "timeout")
    async with bystanders(admission) as present:

        def generate(call: Call) -> None:
            def gets_a_code(value: Any) -> None:
                trial = _attempt(admission, present.arena, json.dumps(value).encode())
                call(_try_all(admission, [trial], coded()))

            try_examples(admission.context.seed, bodies, EXAMPLES, gets_a_code)

        await in_thread(generate, deadline=admission.T.recovery_never)


@verifies("AD-ADMIT-06", part=2, isolation="quiet", busy=True, waits=WORK)
async def test_hostile_requests_leave_redis_as_it_was(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    inside, waiting = await admission.characters(2)
    await arena.admit(inside)
    await arena.enqueue(waiting)
    before = await keys.snapshot("session:*", "queue:*", "replacement:*")

    await _try_all(admission, _attempts_without_subject(admission, arena), coded())
    ids = [*NO_INSTANCE, "evil-unknown"]
    trials = [*_attempts_at(admission, ids, waiting), *_other_calls_at(ids, waiting)]
    await _try_all(admission, trials, turned_away(), refused())

    expect(await keys.snapshot("session:*", "queue:*", "replacement:*"), before, why="records of sessions and queues")
    marked = [key for key in await keys.snapshot("*") if MARK in key]
    expect(marked, [], why="keys built from an id that is none")
