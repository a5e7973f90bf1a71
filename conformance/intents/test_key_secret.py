"""Where the secret of the keys shows (seed 3.3 and 6): nowhere but in the environment."""

import json
from collections.abc import Iterable

from holdfast.check.finding import NotObservable, demand, expect
from holdfast.check.keyspace import Keyspace
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import NOBODY, Intents
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.secret import added_keys, readings, shows, with_secrets, without_secret
from holdfast.conformance.intents.wire import Answer, accepted, idem_key, refused

VARIABLE = "XG2G_IDEM_SECRET"


@verifies("IN-KEY-07")
async def test_the_secret_is_in_no_answer(intents: Intents) -> None:
    for answer in await _asked_in_every_way(intents):
        _hidden(intents, [answer.text, *answer.headers.values()], f"an answer with {answer.status}")


@verifies("IN-KEY-07", part=2)
async def test_the_secret_is_in_no_log_line(intents: Intents) -> None:
    await _asked_in_every_way(intents)
    lines = [line for node in intents.nodes for line in intents.log_of(node)]
    if not lines:
        raise NotObservable("[observe] events with any line")
    _hidden(intents, lines, "the logs since the start")


@verifies("IN-KEY-07", part=3, isolation="quiet", nodes=ONE_OF_EACH)
async def test_the_secret_is_in_no_key_and_no_value(intents: Intents) -> None:
    answers = await _asked_in_every_way(intents)
    stored = await intents.store.snapshot("*")
    shown = [f"{key} {plain(value)}" for key, value in stored.items()]
    _hidden(intents, shown, "Redis")
    known = any(answers[0].session_id in text for text in shown)
    demand(known, "the accepted session in Redis", f"{len(shown)} keys without it", "control")


@verifies("IN-KEY-07", part=4)
async def test_the_secret_is_in_no_metric(intents: Intents) -> None:
    await _asked_in_every_way(intents)
    seen, blocked = dict[str, str](), None
    for node in intents.nodes:
        try:
            seen[node] = await intents.metrics_text(node)
        except NotObservable as without:
            blocked = without
    if blocked and not seen:
        raise blocked
    _hidden(intents, seen.values(), f"the metrics of {', '.join(seen)}")


async def _asked_in_every_way(intents: Intents) -> list[Answer]:
    """Makes requests that are answered 202, 400, 401 and 403; returns the answers, the accepted one first."""
    ref, recording = intents.channel(), intents.recording()
    one, token = intents.start_body(ref), intents.bearer()
    tries = [
        (one, token, accepted()),
        (intents.start_body(""), token, refused(400)),
        (intents.start_body(f"{ref}|x"), token, refused(400)),
        (intents.vod_body(recording, "x"), token, refused(400)),
        (intents.vod_body(f"{recording}|x"), token, refused(400)),
        (one, NOBODY, refused(401)),
        (one, intents.reader, refused(403)),
    ]
    answers = list[Answer]()
    await intents.places()
    for body, authorization, legal in tries:
        answer = await intents.post(body, authorization)
        with intents.context.arranging("IN-VALID-03" if legal == refused(400) else "IN-AUTH-01"):
            expect(answer, legal, why="one of each answer")
        answers.append(answer)
    return answers


def _hidden(intents: Intents, texts: Iterable[str], where: str) -> None:
    shown = [text for text in texts if shows(intents.secret(), text)]
    demand(not shown, "no text with the secret", f"{len(shown)} with it, as text, hex or base64", where)


# --- a generated secret is announced


@verifies("IN-KEY-08", isolation="disruptive", nodes=ONE_OF_EACH, waits="3*api_ready + 3*accept_fast")
async def test_a_generated_secret_is_announced_by_one_warning(intents: Intents) -> None:
    for how in ("unset", "empty"):
        before = len(_log(intents))
        await without_secret(intents, how)
        await _warned(intents, before, 1, f"the secret is {how}")
    before = len(_log(intents))
    await with_secrets(intents, "a secret that is configured")
    await _warned(intents, before, 0, "the secret is configured")


@verifies("IN-KEY-08", part=2, isolation="disruptive", nodes=ONE_OF_EACH, waits="api_ready + accept_fast")
async def test_the_warning_does_not_tell_the_secret(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    before = len(_log(intents))
    await without_secret(intents, "unset")
    since, profile = T.now(), intents.profiles[0]
    session = await intents.begin(profile=profile)
    added = await added_keys(intents, keys, since)
    await _warned(intents, before, 1, "the secret is unset")
    for warning in _warnings(intents, before):
        made = {
            intents.store.mapping(idem_key(secret, session.target, profile, 0)): secret for secret in readings(warning)
        }
        told = sorted(added & made.keys())
        demand(not told, "no word that makes the key of a start", f"a word that makes {', '.join(told)}", "the warning")


def _log(intents: Intents) -> list[str]:
    return intents.log_of(intents.apis[0])


def _warnings(intents: Intents, before: int) -> list[str]:
    """Returns the lines at warning level that name the variable, without the first ones of the log."""
    return [line for line in _log(intents)[before:] if VARIABLE in line and _is_warning(line)]


def _is_warning(line: str) -> bool:
    """Whether the line is at warning level: by its field where it is a JSON object, else by its words."""
    try:
        record = json.loads(line)
    except ValueError:
        return "warn" in line.lower()
    levels = [str(record.get(name, "")) for name in ("level", "severity", "lvl")] if isinstance(record, dict) else []
    return any(level.lower().startswith("warn") for level in levels)


async def _warned(intents: Intents, before: int, times: int, why: str) -> None:
    """Waits until the log has so many warnings, and judges that no more come."""

    async def count() -> int:
        return len(_warnings(intents, before))

    await intents.settles(count, times, why=f"warnings that name {VARIABLE}, where {why}")

    async def still() -> None:
        expect(await count(), times, why=f"warnings that name {VARIABLE}, where {why}")

    await intents.throughout(still, intents.T.accept_fast, f"the log, where {why}")
