"""Faults drawn from a seed, under clients that start and stop channels through both replicas of the API."""

import asyncio

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, demand, expect
from holdfast.check.timeline import Moment
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents
from holdfast.conformance.intents.scenarios.watch import Watch, watching
from holdfast.conformance.intents.wire import accepted, refused
from holdfast.conformance.shared.wire import status
from holdfast.target.fault import Strength

# At least these; faults of whatever else a target offers are drawn too.
FAULTS = ("chaos.latency", "chaos.partition")
# In the spec's seconds.
STORM = 120
STRIKES = Strength(longest=20, rest=10)
# Faults that make a worker slow, by far less than the life of a lease; under all others its leases may run out.
HARMLESS = frozenset({"delay", "slow"})
CLIENTS, CHANNELS = 10, 4
SLOTS = 2


@verifies(
    "IN-TUNER-01",
    part=2,
    isolation="disruptive",
    nodes={"api": 2, "worker": 1},
    needs=FAULTS,
    waits="4*lease_ttl + 2*give_up + 2*lease_ttl",
)
async def test_random_storm(intents: Intents, faults: Faults, draw: int) -> None:
    """At most one session runs on a channel, and in a slot; afterwards no lease is left and starts run again."""
    await intents.slots(SLOTS)
    channels, over = [intents.channel() for _ in range(CHANNELS)], asyncio.Event()
    async with watching(intents, slots=SLOTS) as watch:
        clients = [intents.beside(_client(intents, channels, over, turn)) for turn in range(CLIENTS)]
        await faults.storm(draw, STORM, STRIKES)
        over.set()
        given = {session_id for each in await asyncio.gather(*clients) for session_id in each}
        _disown(intents, watch)
        await _all_end(intents, given | await _unanswered(intents))
        await _no_lease_left(intents)
        await intents.retry(channels[0])


def _disown(intents: Intents, watch: Watch) -> None:
    """Tells the watch of the faults under which sessions may have ended without a word of it in their records."""
    for window in intents.context.windows:
        fault = window.fault
        of_an_api = any(fault.subject == api or fault.subject.startswith(f"{api}-") for api in intents.apis)
        if not of_an_api and fault.kind not in HARMLESS:
            watch.killed(Moment(window.asked, window.asked), before=window.healed)


async def _client(intents: Intents, channels: list[str], over: asyncio.Event, turn: int) -> set[str]:
    """Starts and stops channels until the storm is over; returns the sessions that it was given."""
    given, random, T = set[str](), intents.context.random, intents.T
    while not over.is_set():
        node = intents.apis[turn % len(intents.apis)]
        turn += 1
        answer = await intents.start(random.choice(channels), random.choice(intents.profiles), node=node)
        if answer.answered:
            expect(answer, accepted(), refused(503), why="a start in a storm")
        if answer.status == 202:
            given.add(answer.session_id)
            await T.sleep(2 * random.random() * T.renew_every, "the client's session to run for a while")
            stopped = await intents.stop(answer.session_id, node=node)
            if stopped.answered:
                expect(stopped, status(202), status(503), why="a stop in a storm")
        await T.sleep(random.random() * T.sample_every, "the client's next idea")
    return given


async def _unanswered(intents: Intents) -> set[str]:
    """Returns all sessions that have a record, also those of starts whose answers were lost."""
    root = intents.store.name("session", "")
    return {key.removeprefix(root) for key in await intents.store.sessions()}


async def _all_end(intents: Intents, given: set[str]) -> None:
    """Stops all sessions, and judges that each ends, or is not known any more: Redis may have come back empty."""

    async def ended() -> bool:
        left = 0
        for session_id in given:
            seen = await intents.poll(session_id)
            if seen.terminal or seen.status == 404:
                continue
            left += 1
            await intents.stop(session_id)
        return not left

    T = intents.T
    await T.until(ended, give_up=T.give_up, what="all sessions of the storm to end", every=T.sample_every)


async def _no_lease_left(intents: Intents) -> None:
    T, left = intents.T, dict[str, str]()

    async def gone() -> bool:
        left.clear()
        left.update(await intents.store.leases())
        return not left

    try:
        longest = T.lease_ttl + T.lease_slack
        await T.until(gone, give_up=longest, what="all leases to be gone", every=T.sample_every)
    except Finding:
        demand(not left, "no lease", ", ".join(left), "a whole life of a lease after all sessions have ended")
