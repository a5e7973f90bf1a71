"""Events of sessions (seed §4 Observability Taxonomy): reconnects with their counters, and how each session ended."""

import json
import uuid
from collections.abc import Awaitable, Callable

from holdfast.check.finding import demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance, tally
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.values import same_id
from holdfast.conformance.admission.wire import Answer, refused
from holdfast.conformance.shared.wire import moment

REASONS = frozenset({"user", "network", "replace", "grace_expired"})


@verifies("AD-OBS-04", isolation="quiet", waits="wait_tolerance")
async def test_every_presentation_of_a_token_is_logged_and_only_a_resumed_session_as_reconnected(
    admission: Admission,
) -> None:
    arena = await admission.instance()
    session = await _one_good_and_two_bad_presentations(admission, arena)

    wanted = {"connection.reconnect_attempt": 3, "connection.reconnected": 1, "connection.admitted": 1}

    async def recorded() -> str:
        return tally({name: len(admission.events(event=name, instanceId=arena.id)) for name in wanted})

    await admission.settles(
        recorded,
        tally(wanted),
        why="one admission before three presentations, one of them good",
    )
    (resumed,) = admission.events(event="connection.reconnected", instanceId=arena.id)
    demand(same_id(resumed.get("sessionId"), session.session_id), f"session {session.session_id}", json.dumps(resumed))


@verifies("AD-OBS-04", part=2, isolation="quiet", waits="wait_tolerance")
async def test_presentations_and_resumed_sessions_are_counted_apart(admission: Admission) -> None:
    names = ("reconnection_attempt_total", "reconnection_success_total")
    before = [await admission.total(name) for name in names]
    await _one_good_and_two_bad_presentations(admission, await admission.instance())

    async def rise() -> str:
        now = [await admission.total(name) - start for name, start in zip(names, before, strict=True)]
        return f"{names[0]} by {now[0]:g}, {names[1]} by {now[1]:g}"

    await admission.settles(rise, f"{names[0]} by 3, {names[1]} by 1", why="rise by three presentations, one good")


async def _one_good_and_two_bad_presentations(admission: Admission, arena: Instance) -> Answer:
    character = await admission.character()
    session, gone = await arena.dropped(character)
    with admission.arranging("AD-RECON-06"):
        expect(await arena.connect(character, token=str(uuid.uuid4())), refused(), why="no such token")
    await arena.resume(character, session, gone=gone)
    with admission.arranging("AD-RECON-07"):
        expect(await arena.connect(character, token=session.token), refused(), why="a token works once")
    return session


@verifies("AD-OBS-05", isolation="quiet", waits="stale_reclaim_grace + slack")
async def test_each_end_of_a_session_has_its_own_reason(admission: Admission, T: SpecTime) -> None:
    """All ends in one run: a leave, a replacement, a lost socket, and a client that never came to attach."""
    arena = await admission.instance()
    leaver, replaced, absent, unlucky = await admission.characters(4)
    left = await arena.admit(leaver)
    await arena.release(left.session_id, leaver)
    old, _ = await arena.join(replaced)
    await arena.replaced(replaced)
    stale = await arena.admit(absent)
    lost, socket = await arena.join(unlucky)

    await _ends_as_lost(admission, T, lost.session_id, await socket.drop())
    await T.until(
        _has_ended(admission, stale.session_id),
        since=moment(stale),
        give_up=T.stale_reclaim_grace + T.slack,
        what="the cleanup of the session that never attached",
    )
    for session, legal, why in (
        (left, "user", "lines for a session that was left"),
        (old, "replace", "lines for a replaced session"),
        (lost, "grace_expired, network", "lines for a lost socket"),
    ):
        with admission.context.collect():
            expect(", ".join(_reasons(admission, sessionId=session.session_id)), legal, why=why)
    none_of(sorted(set(_reasons(admission)) - REASONS), "reason beside the four", "in the whole run")


async def _ends_as_lost(admission: Admission, T: SpecTime, session: str, dropped: Moment) -> None:
    end = {"event": "connection.disconnected", "sessionId": session}
    _, seen = await admission.event(within=T.prompt_never, **end, reason="network")
    T.at_most("prompt", since=dropped, seen=seen, what="the line of a lost socket")
    _, seen = await admission.event(within=T.grace_reclaim + T.prompt_never, **end, reason="grace_expired")
    T.at_least("grace", since=dropped, seen=seen, tolerance="slack", what="an unused grace lasts")
    T.at_most("grace_reclaim", since=dropped, seen=seen, tolerance="slack", what="an unused grace lasts")


def _has_ended(admission: Admission, session: str) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return bool(_reasons(admission, sessionId=session))

    return look


def _reasons(admission: Admission, **wanted: str) -> list[str]:
    """Returns the reasons sorted, since lines of several nodes have no order."""
    records = admission.events(event="connection.disconnected", **wanted)
    return sorted(str(record.get("reason")) for record in records)
