"""Clients that try again while connections break and the API is started anew (C9, C10, C12, C13)."""

import asyncio
from collections.abc import Sequence
from functools import partial

from holdfast.check.faults import Faults
from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import PHASE_1, PHASE_2, Intents, Session
from holdfast.conformance.intents.running import ONE_OF_EACH
from holdfast.conformance.intents.scenarios.watch import watching
from holdfast.conformance.intents.wire import Answer, accepted, refused, shown

STARTS, CLIENTS, RESETS = 200, 10, 10
# How long after the first start of a herd the API is killed at the latest, in looks at its own speed.
KILLED_WITHIN = 5
TWO_APIS = {"api": 2, "worker": 1}
ONE, OTHER = "holdfast-secret-before-the-rotation", "holdfast-secret-after-the-rotation"


async def _persistent(intents: Intents, ref: str, nodes: Sequence[str] = (), url: str | None = None) -> Answer:
    """Starts the channel again and again until there is an answer that is not 503; returns it."""
    T, began, turn = intents.T, intents.T.now(), 0
    while True:
        node = nodes[turn % len(nodes)] if nodes else None
        answer = await intents.start(ref, node=node, url=url)
        if answer.answered and answer.status != 503:
            return answer
        if T.now().lo > began.hi + T.give_up:
            raise Finding(["an answer to a start"], answer.describe(), "all attempts of one client", late=True)
        turn += 1
        await T.sleep(T.sample_every / 2, "the client's next attempt")


async def _client(
    intents: Intents,
    ref: str,
    over: asyncio.Event,
    *,
    least: int = 1,
    nodes: Sequence[str] = (),
    url: str | None = None,
) -> list[Answer]:
    """Starts the channel again and again until it is over, so often at least; returns the answers."""
    answers = list[Answer]()
    while len(answers) < least or not over.is_set():
        answers.append(await _persistent(intents, ref, nodes, url))
        await intents.T.sleep(intents.T.sample_fast, "the client's next start")
    return answers


def _together(of_clients: Sequence[Sequence[Answer]]) -> list[Answer]:
    return [answer for answers in of_clients for answer in answers]


async def _one_session(intents: Intents, answers: Sequence[Answer], ref: str, what: str) -> None:
    """Judges that all answers name one session, and that this one runs."""
    first = answers[0]
    for answer in answers:
        expect(answer, accepted(first.session_id), why=what)
    verdict = await intents.decided(Session(first.session_id, ref, intents.profiles[0], answers[-1]))
    expect(verdict, shown(*intents.running_states), why=what)


@verifies("IN-HERD-03", isolation="disruptive", nodes=ONE_OF_EACH, needs=("chaos.partition",), waits="4*start_ready")
async def test_c09_connections_break_under_identical_starts(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """Two hundred identical starts while the clients' connections break ten times: one session in total."""
    ref, link, over = intents.channel(), f"{intents.apis[0]}-client", asyncio.Event()
    url = await faults.client_url(intents.apis[0])

    async with watching(intents):
        least = STARTS // CLIENTS
        clients = [intents.beside(_client(intents, ref, over, least=least, url=url)) for _ in range(CLIENTS)]
        for _ in range(RESETS):
            async with faults.during("cut", link):
                await T.sleep(T.sample_fast, "starts under the cut")
        over.set()
        answers = _together(await asyncio.gather(*clients))
        await _one_session(intents, answers, ref, "identical starts over connections that break")
    records = await intents.store.sessions()
    demand(len(records) == 1, "one record", f"{len(records)} records", "identical starts over connections that break")


@verifies(
    "IN-HERD-03",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    needs=("control.kill", "control.restart"),
    waits="api_ready + 2*start_ready",
)
async def test_c10_api_killed_in_the_middle_of_a_herd(intents: Intents, faults: Faults, T: SpecTime) -> None:
    """Clients try again: one session runs, and no start is answered with one that never leaves NEW."""
    ref, over = intents.channel(), asyncio.Event()
    size = T.count("herd_size")
    await intents.places()
    async with watching(intents):
        await intents.warm(intents.apis, size)
        herd = [intents.beside(_client(intents, ref, over)) for _ in range(size)]
        await T.sleep(intents.context.random.random() * KILLED_WITHIN * T.sample_fast, "the herd to be under way")
        async with faults.during("kill", intents.apis[0]):
            pass
        over.set()
        answers = _together(await asyncio.gather(*herd))
        await _one_session(intents, answers, ref, "a herd through an API that was killed")


@verifies("IN-KEY-06", isolation="disruptive", nodes=TWO_APIS, waits="4*api_ready + 2*start_ready")
async def test_c12_secret_rotated_under_identical_starts(intents: Intents, T: SpecTime) -> None:
    """All replicas get a new secret while clients go on starting one channel: one session throughout."""
    without = [partial(intents.restart, api, unset="idem_secret_previous", idem_secret=ONE) for api in intents.apis]
    await intents.parallel(without)
    over, apis = asyncio.Event(), intents.apis
    async with watching(intents):
        session = await intents.running()
        orders = [apis, apis[::-1]] * (CLIENTS // 2)
        clients = [intents.beside(_client(intents, session.target, over, nodes=order)) for order in orders]
        await T.sleep(T.hold_watch / 2, "starts under the first secret")
        rotated = [partial(intents.restart, api, idem_secret=OTHER, idem_secret_previous=ONE) for api in apis]
        await intents.parallel(rotated)
        await T.sleep(T.hold_watch / 2, "starts under the second secret")
        over.set()
        answers = _together(await asyncio.gather(*clients))
        await _one_session(intents, [session.answer, *answers], session.target, "identical starts over a rotation")


@verifies(
    "IN-PHASE-06",
    isolation="disruptive",
    nodes=ONE_OF_EACH,
    settings=PHASE_1,
    waits="2*api_ready + 2*hold_watch + 4*start_ready",
)
async def test_c13_flag_flipped_under_load(intents: Intents, T: SpecTime) -> None:
    """On, off and on again under starts: answers are 202 and 409 only, and no session is lost."""
    over, taken = asyncio.Event(), list[Session]()

    async def client() -> None:
        while not over.is_set():
            ref = intents.channel()
            for profile in (*intents.profiles[:2], intents.profiles[0]):
                answer = await intents.start(ref, profile)
                if answer.answered:  # none while the API is started anew
                    expect(answer, accepted(), refused(409), why="a start while the flag is flipped")
                if answer.status == 202:
                    taken.append(Session(answer.session_id, ref, profile, answer))
            await T.sleep(T.sample_every, "the client's next channel")
            await intents.parallel(
                [partial(_decided_and_stopped, intents, each) for each in taken if each.target == ref]
            )

    async with watching(intents):
        kept = await intents.running()
        clients = [intents.beside(client()) for _ in range(3)]
        for flag in (PHASE_2, PHASE_1):
            await intents.restart(intents.apis[0], **flag)
            await T.sleep(T.hold_watch, "starts after the flip")
        over.set()
        await asyncio.gather(*clients)
        expect(await intents.poll(kept), shown(*intents.running_states), why="a session of before the flips")
    demand(taken, "sessions that were accepted under the flips", "none", "control")


async def _decided_and_stopped(intents: Intents, session: Session) -> None:
    """Waits until there is a verdict on the session and stops it; in between the API may be away for a moment."""
    T = intents.T

    async def over() -> bool:
        seen = await intents.poll(session)
        if not seen.terminal and seen.state:
            await intents.stop(session)
        return seen.terminal

    await T.until(over, give_up=T.give_up + T.api_ready, what="a session of the load to be decided and to end")
