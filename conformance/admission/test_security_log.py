"""What the log says of abuse, and what neither log nor wire may show (seed §7, Risks & Mitigations)."""

import json
import uuid
from typing import Any

from holdfast.check.finding import Absent, Finding, Inconclusive, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.values import UUID
from holdfast.conformance.admission.wire import Answer, refused, success
from holdfast.conformance.shared.wire import moment


def _called(admission: Admission, word: str) -> str:
    """Returns what the target calls it: the spec does not fix the names, so a descriptor may map them."""
    return str(admission.features.get("names", {}).get(word, word))


def _suspicion(admission: Admission, user: User, pattern: str | None = None) -> dict[str, Any]:
    fields = {"event": "security_event", "eventType": "suspicious_activity", "pattern": pattern}
    return {"userId": user.id} | {key: _called(admission, text) for key, text in fields.items() if text is not None}


@verifies("AD-SEC-04", isolation="quiet", waits="2*prompt")
async def test_rapid_failures_of_tokens_are_logged_as_suspicious(admission: Admission, T: SpecTime) -> None:
    arena, character = await admission.instance(), await admission.character()

    async def guess() -> Answer:
        answer = await arena.connect(character, token=str(uuid.uuid4()))
        with admission.arranging("AD-RECON-06"):
            expect(answer, refused())
        return answer

    await _logged_at_the_threshold(admission, T, guess, "suspicious_token_failures", "rapid_token_failures", character)


@verifies("AD-SEC-04", isolation="quiet", waits="wait_tolerance + 4*prompt")
async def test_mismatched_reconnects_are_logged_as_a_kind_of_their_own(admission: Admission, T: SpecTime) -> None:
    arena, elsewhere = await admission.instance(), await admission.instance()
    for other_place in (arena, elsewhere):
        dropped = await admission.character()
        other = await admission.character(dropped.user) if other_place is arena else dropped
        session, _ = await arena.dropped(dropped)

        async def mismatch(
            place: Instance = other_place, subject: Character = other, token: str = session.token
        ) -> Answer:
            answer = await place.connect(subject, token=token)
            with admission.arranging("AD-RECON-05"):
                expect(answer, refused())
            return answer

        await _logged_at_the_threshold(admission, T, mismatch, "suspicious_mismatches", "mismatched_reconnect", dropped)


async def _logged_at_the_threshold(
    admission: Admission, T: SpecTime, present: Any, threshold: str, pattern: str, character: Character
) -> None:
    """Presents as often as the limiter allows; only warns if the record comes after the suite's threshold."""
    wanted, most = _suspicion(admission, character.user, pattern), T.count("rate_failures")
    reached = [await present() for _ in range(T.count(threshold))][-1]
    try:
        _, seen = await admission.event(within=T.prompt, **wanted)
    except Finding:
        for _ in range(T.count(threshold), most):
            await present()
        _, seen = await admission.event(within=T.prompt_never, **wanted)
    T.at_most("prompt", since=moment(reached), seen=seen, what=f"the {pattern} record")


@verifies("AD-SEC-04", isolation="quiet", waits="wait_tolerance + prompt")
async def test_a_single_refused_token_is_no_suspicion(admission: Admission, T: SpecTime) -> None:
    arena = await admission.instance()
    slipping, mixing_up = await admission.characters(2)
    second = await admission.character(mixing_up.user)
    session, _ = await arena.dropped(mixing_up)
    slips = [
        await arena.connect(slipping, token=str(uuid.uuid4())),
        await arena.connect(second, token=session.token),
    ]
    for slip, owner in zip(slips, ("AD-RECON-06", "AD-RECON-05"), strict=True):
        with admission.arranging(owner):
            expect(slip, refused())
    with admission.arranging("AD-OBS-03"):
        for user in (slipping.user, mixing_up.user):
            await admission.event(within=T.prompt_never, event="connection.failed", userId=user.id)

    await T.sleep_until(moment(slips[-1]), T.prompt, "a record that should not come")
    for user in (slipping.user, mixing_up.user):
        flagged = map(json.dumps, admission.events(**_suspicion(admission, user)))
        none_of(flagged, "record of suspicion", "one refused token alone")


@verifies("AD-SEC-04", isolation="quiet", waits="prompt")
async def test_an_attempt_on_a_foreign_character_is_logged_as_access_denied(admission: Admission, T: SpecTime) -> None:
    """The record is a SHOULD, so its absence warns."""
    arena, character, stranger = await admission.instance(), await admission.character(), admission.stranger()
    answer = await arena.connect(character, as_user=stranger)
    with admission.arranging("AD-SEC-01"):
        expect(answer, refused("CHARACTER_NOT_OWNED"))

    denied = {"event": _called(admission, "security_event"), "eventType": _called(admission, "access_denied")}
    named = {"userId": stranger.id, "characterId": character.id, "instanceId": arena.id}
    try:
        _, seen = await admission.event(within=T.prompt_never, **denied, **named)
    except Finding as lack:
        admission.context.warn(str(lack))
    else:
        T.at_most("prompt", since=moment(answer), seen=seen, what="the access_denied record")


@verifies("AD-SEC-05")
async def test_https_and_wss_are_served_and_their_port_takes_no_plain_http(admission: Admission) -> None:
    """A target that says `tls = false` leaves it to a proxy in front of it; one that says nothing should have it."""
    admission.features.require("tls")
    secure = admission.deployment.nodes[admission.nodes[0]].urls.get("https", "").rstrip("/")
    if not secure:
        raise Absent(["TLS endpoints"], "the descriptor declares none")
    arena, character = await admission.instance(), await admission.character()

    admitted = await arena.connect(character, url=secure)
    expect(admitted, success(), why="over https")
    if admission.features.has("sockets"):
        socket = await arena.attach(admitted.session_id, character, url=secure, owner="AD-SEC-05")
        await socket.beat("over wss")
    plain = await arena.connect(await admission.character(), url=secure.replace("https", "http", 1))
    demand(not 200 <= plain.status < 300, "plain http refused on the TLS port", plain.describe())


@verifies("AD-SEC-05", part=2, isolation="quiet", waits="promote_within + 2*wait_tolerance")
async def test_no_log_line_contains_a_token(admission: Admission, T: SpecTime) -> None:
    last = await _every_way_of_handling_tokens(admission)
    with admission.arranging("AD-OBS-05"):
        await admission.event(within=T.prompt_never, userId=last.user.id, event="connection.disconnected")

    received = [value for value in admission.context.transcript.secrets.values() if UUID.fullmatch(value)]
    if len(received) < 6:
        raise Inconclusive(f"only {len(received)} tokens were handed out")
    lines = [line for node in admission.deployment.nodes.values() for line in node.log_lines()]
    none_of([line for line in lines if any(token in line for token in received)], "log line with a token in clear")


async def _every_way_of_handling_tokens(admission: Admission) -> Character:
    """Lets every secret be made and used: issued, offered, cancelled, replaced, lost, presented, promoted."""
    arena = await admission.instance(capacity=1)
    character, stranger = await admission.characters(2)
    session, _ = await arena.join(character)
    for offer in (await arena.offer(character), await arena.offer(character)):
        if admission.features.has("cancel_replacement"):
            await arena.cancel(offer, character)
        await arena.connect(character, replace=offer)
    replaced = await arena.replaced(character)
    await arena.connect(character, token=session.token)
    socket = await arena.attach(replaced.session_id, character)
    gone = await admission.lose(socket)
    await arena.connect(stranger, token=replaced.token)
    resumed = await arena.resume(character, replaced, gone=gone)
    if admission.features.get("ws_reconnect"):
        presented = {"reconnectionToken": resumed.token, "characterId": character.id}
        socket = await arena.try_attach(presented, character.user)
        with admission.arranging("AD-RECON-08"):
            await socket.first_frame()
    [promoted] = await arena.line_up(1)
    await arena.release(resumed.session_id, character)
    admitted, _ = await arena.promoted(promoted)
    await arena.release(admitted.session_id, promoted)
    return promoted
