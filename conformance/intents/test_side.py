"""Refused requests have no effect (seed 6): nothing is stored, published, started, stopped or leased."""

import contextlib
import uuid
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.check.finding import NotApplicable, demand, expect
from holdfast.check.keyspace import NO_WRITE, Keyspace
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import NOBODY, PHASE_1, Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.wire import accepted, refused
from holdfast.conformance.shared.wire import status

UNKNOWN = "Bearer 5d1be7a0c4f2496e8a37b90d6c12ef84"


@verifies("IN-SIDE-01", isolation="quiet", nodes=ONE_OF_EACH, waits="quiet_watch")
async def test_401_and_403_leave_store_and_bus_untouched(intents: Intents, T: SpecTime) -> None:
    refusals = ((NOBODY, 401), (UNKNOWN, 401), (intents.reader, 403))

    async def ask() -> None:
        for turn in range(T.count("refused_count")):
            authorization, code = refusals[turn % len(refusals)]
            for body in _bodies(intents):
                expect(await intents.post(body, authorization), refused(code), why=f"a valid body, {body['type']}")

    await intents.leaves_no_trace(ask, "requests that were refused with 401 and 403")
    session = await intents.running()
    demand(await intents.store.session(session.id), "a record of a session that is let in", "none", "control")


def _bodies(intents: Intents) -> Iterator[Mapping[str, Any]]:
    """A start of a channel, a start of a recording where the target takes any, and a stop."""
    yield intents.start_body(intents.channel())
    with contextlib.suppress(NotApplicable):
        yield intents.vod_body(intents.recording())
    yield intents.stop_body(str(uuid.uuid4()))


@verifies("IN-SIDE-02", waits="start_ready + hold_watch + stop_release")
async def test_a_refused_stop_does_not_stop(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    await _refused_stops(intents, session)
    await intents.undisturbed(session, T.hold_watch, "a session whose stops were refused")
    expect(await intents.stop(session), accepted(), status(202), why="control: the same stop by one who may")
    await intents.ended(session)


@verifies("IN-SIDE-02", part=2, waits="start_ready + hold_watch")
async def test_a_refused_stop_leaves_lease_and_record(intents: Intents, T: SpecTime) -> None:
    session = await intents.running()
    await _refused_stops(intents, session)

    async def look() -> None:
        lease = await intents.store.lease(intents.store.service(session.target))
        expect(lease.owner, session.id, why="owner of the service lease after refused stops")
        asked = (await intents.store.session(session.id)).get("stopRequestedAtMs")
        demand(not asked, "no stopRequestedAtMs in the record", f"stopRequestedAtMs {asked}", "after refused stops")

    await intents.throughout(look, T.hold_watch, "lease and record", every=T.sample_every)


async def _refused_stops(intents: Intents, session: Session) -> None:
    expect(await intents.stop(session, NOBODY), refused(401), why="a stop without a token")
    expect(await intents.stop(session, intents.reader), refused(403), why="a stop with v3:read only")


@verifies("IN-SIDE-03", isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1)
async def test_in_phase_1_a_refused_start_does_not_block_the_channel(intents: Intents) -> None:
    ref = intents.channel()
    await _refused_starts(intents, ref)
    expect(await intents.start(ref), accepted(), why="the start of one who may, right after")


@verifies("IN-SIDE-03", part=2, isolation="quiet", nodes=ONE_OF_EACH, settings=PHASE_1)
async def test_in_phase_1_a_refused_start_takes_no_lease(intents: Intents, keys: Keyspace, T: SpecTime) -> None:
    ref, since = intents.channel(), T.now()
    await _refused_starts(intents, ref)
    key = intents.store.service(ref)
    seen = ", ".join(event.kind for event in await keys.events(key, since=since))
    demand(not seen, f"nothing that happens to {key}", seen, "starts that were refused")
    await intents.begin(ref)
    taken = [event for event in await keys.events(key, since=since) if event.kind not in NO_WRITE]
    demand(taken, f"{key} taken", "nothing", "control: the start of one who may")


async def _refused_starts(intents: Intents, ref: str) -> None:
    body = intents.start_body(ref)
    expect(await intents.post(body, NOBODY), refused(401), why="a start without a token")
    expect(await intents.post(body, intents.reader), refused(403), why="a start with v3:read only")
    wrong: Any = 3
    answer = await intents.post(intents.start_body(ref, wrong))
    expect(answer, refused(400), why="a start with a number for a profile")
