"""Hostile requests (fills seed §7, §11): each gets the spec's refusal, never a server error, never a changed state.

What can't be read at all, or has values of another kind than the contract's, is refused with a code by those who
declare the whole contract (`[dialect] openapi`). Neither the document nor upstream says so: everybody else may answer
with any status that blames the client. Nor does either limit the length of a body or of an id.
"""

import contextlib
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.check import raw_http
from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import expect
from holdfast.check.generated import json_values, try_examples
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import rawtcp
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import ADMIN_HEADER, Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import (
    Answer,
    client_error,
    coded,
    no_server_error,
    queued,
    refused,
    success,
    turned_away,
)
from holdfast.conformance.shared.hostile import DEEP, DIGITS, OVERSIZED, TYPES, no_objects
from holdfast.conformance.shared.wire import cut_off, status

# A hundred requests take a second, but longer on a machine that also runs other work.
WORK = "5*prompt"
DRAIN = "/admin/drain-mode/instance/{}"
EXAMPLES = 60

# Not a JSON object with a character in it, however it is read.
NO_OBJECT = [*no_objects("characterId"), b"{}", b'{"characterId": "\xc3\x28"}']

# JSON texts in the place of characterId that name no character.
NO_CHARACTER = [
    "1", "true", "1.5", "-1", "1e999", "NaN", "[]", "{}", '["x"]', '{"$ne": null}', '""', "null", '"*"', '"a:b"',
    '"💥"', '"\\u0000"', '"\\ud800"', '"../x"', '"\\r\\nSET x 1"', DIGITS, f'"{"a" * 30_000}"',
    DEEP,
]  # fmt: skip
NO_BUILD = ["1", "true", "[]", "{}", '"\\u0000"', '"\\ud800"', DIGITS, f'"{"a" * 30_000}"']
NO_TOKEN = [*NO_BUILD, '"x"', '"*"']

# Texts in the place of an instance id in the path, as sent; the mark would show in a key name.
MARK = "evil"
NO_INSTANCE = [
    "evil%40id%2A", "evil%00", "evil%00b", "..%2F..%2Fevil", "evil%2Fb", "evil%0d%0aX-Evil:1", "evil%20b", "evil%ff%fe",
    "evil%F0%9F%92%A5", "session:char:evil", "evil*", "evil%", "evil%zz", "evil{}", "evil;b", "evil?b",
    "", "..", "%2e%2e", "%00",
]  # fmt: skip
# Inside the pattern, and no character's: whether it is too long or just unknown is for the target to say.
ENDLESS = "evil" * 1_200

NO_CREDENTIALS = [
    "InvalidFormat", "Bearer", "Bearer ", "Bearer null", "Bearer hf1..", "Bearer hf1.u.0", "Bearer hf1.u." + "0" * 64,
    "Bearer ..", "Bearer {}", "Basic dTpw", "Negotiate x", ",",
]  # fmt: skip


@dataclass(frozen=True)
class Trial:
    """One hostile request, sent as raw bytes: an HTTP library would correct the path and refuse the headers."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def describe(self) -> str:
        body = json.dumps(self.body[:60].decode("utf-8", "backslashreplace"))
        return f"{self.method} {self.path[:80]} with {body}, {len(self.body)} bytes"


async def _try_all(
    admission: Admission, trials: Iterable[Trial], *legal: Any, row_of: Callable[[Answer], str] | None = None
) -> None:
    """Sends all of them; each has to get a legal answer. `row_of` tells which row an answer speaks of."""

    async def attempt(trial: Trial) -> None:
        request = raw_http.request(trial.method, trial.path, trial.headers, trial.body)
        answer = await rawtcp.exchange(admission, [request])
        with contextlib.ExitStack() as stack:
            if answer.answered:  # else every further trial would run into its timeout
                stack.enter_context(admission.context.collect())
            if row_of:
                stack.enter_context(admission.context.about(row_of(answer)))
            expect(answer, *legal, why=trial.describe())

    await admission.parallel([functools.partial(attempt, trial) for trial in trials], at_once=8)


def _unreadable(admission: Admission) -> tuple[Any, ...]:
    """Returns the legal answers to an attempt that can't be read, or whose fields are of a wrong kind."""
    return (coded(),) if admission.features.get("openapi") else (coded(), client_error())


def _as(user: User | None, **headers: str) -> dict[str, str]:
    return {**({"Authorization": f"Bearer {user.bearer}"} if user else {}), **headers}


def _body(**texts: str) -> bytes:
    """Returns a JSON object with these JSON texts inserted as they are."""
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in texts.items()) + "}").encode("utf-8")


def _attempt(admission: Admission, arena: Instance, body: bytes, user: User | None = None) -> Trial:
    """Returns an attempt, by a user of its own unless one is given, so that no lock hides the answer."""
    return Trial("POST", f"/instances/{arena.id}/connect", _as(user or admission.user()), body)


def _sound(arena: Instance, character: Character) -> bytes:
    """Returns the body of an attempt to which nothing is wrong, as the target's dialect spells it."""
    return json.dumps(arena.request(character.id).body).encode()


def _attempts_without_subject(admission: Admission, arena: Instance) -> list[Trial]:
    codec, build = admission.codec, json.dumps(admission.build)
    named = [_body(**{codec.character_field: text, codec.build_field: build}) for text in NO_CHARACTER]
    return [_attempt(admission, arena, body) for body in [*NO_OBJECT, *named]]


@verifies("AD-ADMIT-05")
@verifies("AD-ADMIT-06", waits=WORK)
async def test_a_body_without_a_character_in_it_gets_a_code(admission: Admission) -> None:
    def row_of(answer: Answer) -> str:
        return "AD-ADMIT-06" if answer.given("sessionId", "position") else "AD-ADMIT-05"

    async with bystanders(admission) as present:
        trials = _attempts_without_subject(admission, present.arena)
        await _try_all(admission, trials, *_unreadable(admission), row_of=row_of)


@verifies("AD-ADMIT-05")
async def test_fields_of_a_wrong_kind_get_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        codec = admission.codec
        builds = [{codec.build_field: text} for text in NO_BUILD]
        tokens = [{codec.build_field: json.dumps(admission.build), codec.token_field: text} for text in NO_TOKEN]
        own = await admission.characters(len(builds) + len(tokens))
        bodies = [
            _body(**{codec.character_field: json.dumps(character.id), **texts})
            for character, texts in zip(own, [*builds, *tokens], strict=True)
        ]
        trials = [_attempt(admission, present.arena, body, each.user) for each, body in zip(own, bodies, strict=True)]
        await _try_all(admission, trials, *_unreadable(admission))


@verifies("AD-ADMIT-05")
async def test_a_body_of_another_content_type_gets_a_code(admission: Admission) -> None:
    async with bystanders(admission) as present:
        path = f"/instances/{present.arena.id}/connect"
        said = [_as(admission.user(), **{"Content-Type": kind}) for kind in TYPES]
        trials = [Trial("POST", path, headers, b"characterId=1") for headers in said]
        await _try_all(admission, trials, *_unreadable(admission))


@verifies("AD-ADMIT-05")
async def test_ten_megabytes_do_no_harm(admission: Admission) -> None:
    """A server may end the connection instead of reading on, and then its answer is lost; or read all of it."""
    async with bystanders(admission):
        character, arena = await admission.character(), await admission.instance()
        padded = _sound(arena, character)[:-1] + b" " * OVERSIZED + b"}"
        attempt = _attempt(admission, arena, padded, character.user)
        as_it_is = () if admission.features.get("openapi") else (success(), queued())
        await _try_all(admission, [attempt], coded(), cut_off(), client_error(), *as_it_is)
        leave = Trial("POST", f"/instances/{arena.id}/disconnect", _as(character.user), b"[" * OVERSIZED)
        await _try_all(admission, [leave], cut_off(), client_error())


@verifies("AD-ADMIT-06")
async def test_a_name_given_twice_does_not_smuggle_a_foreign_character_in(admission: Admission) -> None:
    arena, build = await admission.instance(), json.dumps(admission.build)
    codec, victim = admission.codec, await admission.character()
    for order in (1, -1):
        own = await admission.character()
        ids = [json.dumps(character.id) for character in (own, victim)][::order]
        name, other = codec.character_field, codec.build_field
        body = f'{{"{name}": {ids[0]}, "{other}": {build}, "{name}": {ids[1]}}}'.encode()
        await _try_all(admission, [_attempt(admission, arena, body, own.user)], success(), *_unreadable(admission))
        expect(await arena.status(victim), status(404), why="the foreign character")
    expect(await arena.connect(victim), success(), why="the foreign character is nowhere in session")


@verifies("AD-ADMIT-06", busy=True, waits=WORK)
async def test_an_instance_id_outside_the_pattern_is_refused(admission: Admission) -> None:
    character, arena = await admission.character(), await admission.instance()
    attempts = await _attempts_at(admission, arena, NO_INSTANCE)
    await _try_all(admission, attempts, refused("INVALID_INSTANCE"), client_error())
    await _try_all(admission, await _attempts_at(admission, arena, [ENDLESS]), refused(), client_error())
    await _try_all(admission, _other_calls_at([*NO_INSTANCE, ENDLESS], character), turned_away())
    with admission.arranging("AD-ADMIT-01"):
        expect(await arena.connect(character), success(), why="control: a sound id")


async def _attempts_at(admission: Admission, arena: Instance, instances: Sequence[str]) -> list[Trial]:
    """Returns attempts that are sound but for the instance, each by a character and a user of its own."""
    people = await admission.characters(len(instances))
    return [
        Trial("POST", f"/instances/{id_}/connect", _as(each.user), _sound(arena, each))
        for id_, each in zip(instances, people, strict=True)
    ]


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
        body = _sound(present.arena, present.waiting)
        readable = [Trial("POST", path, {"Authorization": value}, body) for value in [*NO_CREDENTIALS, *forged]]
        odd = ["Bearer \udcff\udcfe", "Bearer " + "a" * 5_000]
        unreadable = [Trial("POST", path, {"Authorization": value}, body) for value in odd]
        await _try_all(admission, readable, refused("NOT_AUTHENTICATED"))
        await _try_all(admission, unreadable, refused("NOT_AUTHENTICATED"), client_error())


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
    """These calls and their limits are ours: of a target that does not declare the contract only errors are judged."""
    ours = bool(admission.features.get("openapi"))
    legal = turned_away() if ours else no_server_error()
    async with bystanders(admission) as present:
        own = (present.arena, present.waiting) if ours else (await admission.instance(), await admission.character())
        arena, character = own[0].id, own[1].id
        unreadable = [
            Trial(method, path, admission.admin_headers, body)
            for body in NO_OBJECT
            for method, path in (("PUT", f"/admin/characters/{character}"), ("POST", DRAIN.format(arena)))
        ]
        unsigned: list[dict[str, str]] = [{}, *({ADMIN_HEADER: token} for token in ("", "x", "a" * 5_000))]
        await _try_all(admission, _bad_settings(arena, character, admission.admin_headers), legal)
        await _try_all(admission, unreadable, legal)
        sound = Trial("PUT", f"/admin/instances/{arena}", {}, _body(capacity="50"))
        trials = [replace(sound, headers=headers) for headers in unsigned]
        await _try_all(admission, trials, status(401, 403) if ours else legal)


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
    codec = admission.codec
    bodies = json_values(codec.character_field, codec.build_field, codec.token_field, "timeout")
    async with bystanders(admission) as present:

        def generate(call: Call) -> None:
            def gets_a_code(value: Any) -> None:
                trial = _attempt(admission, present.arena, json.dumps(value).encode())
                call(_try_all(admission, [trial], *_unreadable(admission)))

            try_examples(admission.context.seed, bodies, EXAMPLES, gets_a_code)

        await in_thread(generate, deadline=admission.T.recovery_never)


@verifies("AD-ADMIT-06", part=2, isolation="quiet", busy=True, waits=WORK)
async def test_hostile_requests_leave_redis_as_it_was(admission: Admission) -> None:
    arena, keys = await admission.instance(capacity=1), admission.keys()
    inside, waiting = await admission.characters(2)
    await arena.admit(inside)
    await arena.enqueue(waiting)
    before = await keys.snapshot("session:*", "queue:*", "replacement:*")

    await _try_all(admission, _attempts_without_subject(admission, arena), *_unreadable(admission))
    ids = [*NO_INSTANCE, ENDLESS, "evil-unknown"]
    trials = [*await _attempts_at(admission, arena, ids), *_other_calls_at(ids, waiting)]
    await _try_all(admission, trials, turned_away(), refused())

    after = await keys.snapshot("session:*", "queue:*", "replacement:*")
    moved = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    none_of(moved, "record of a session, queue or offer changed")
    none_of([key for key in await keys.snapshot("*") if MARK in key], "key built from an id that is none")
