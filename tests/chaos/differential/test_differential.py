"""The relay and a real toxiproxy-server, call by call and connection by connection."""

import asyncio
import socket
from collections.abc import Iterator

import pytest

from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from tests.chaos.differential import behaviour_rows, differences, limit_rows  # noqa: F401 - their rows
from tests.chaos.differential.api_rows import SCRIPTS
from tests.chaos.differential.compare import call_text, normal
from tests.chaos.differential.rows import ROWS, Seen
from tests.chaos.differential.servers import HOW_TO_GET_IT, Subject, is_newer, real_server, start_ours, start_real
from tests.chaos.differential.stand import stand

ROW_DEADLINE = 30.0
TRIES = 3  # a late timer is the machine's doing at most so often in a row
STAGGER = 0.04


@pytest.fixture(scope="module")
def taken() -> Iterator[int]:
    """A port that nobody else can listen on."""
    with socket.create_server(("127.0.0.1", 0)) as busy:
        yield busy.getsockname()[1]


async def subjects(guardian: Guardian, ports: PortPool) -> tuple[Subject, Subject]:
    program = real_server()
    if program is None:
        pytest.skip(HOW_TO_GET_IT)
    await guardian.attach()
    real = await start_real(guardian, ports, program)
    if await is_newer(real):
        pytest.skip(f"{program} is newer than 2.12, with which the relay is compared; {HOW_TO_GET_IT}")
    return await start_ours(guardian, ports), real


async def play(subject: Subject, script: str) -> list[object]:
    await subject.clear()
    answers: list[object] = []
    for call in SCRIPTS[script]:
        answer = await subject.call(call.method, call.path, call_text(call, subject), user_agent=call.agent)
        answers.append(normal(answer, subject))
    await subject.clear()
    return answers


async def test_every_call_is_answered_alike(guardian: Guardian, ports: PortPool, taken: int) -> None:
    ours, real = await subjects(guardian, ports)
    for subject in (ours, real):
        subject.ports = {name: ports.take() for name in ("a", "b", "upstream")} | {"busy": taken}
    wrong = []
    for script, calls in SCRIPTS.items():
        answers = zip(calls, *await asyncio.gather(play(ours, script), play(real, script)), strict=True)
        for call, our, their in answers:
            if call.differs and our == their:
                wrong.append(f"{script}: {call} is listed as a difference ({call.differs}), and is none")
            elif not call.differs and our != their:
                wrong.append(f"{script}: {call}\n  relay     {our}\n  toxiproxy {their}")
    assert not wrong, "\n".join(wrong)


def test_every_difference_of_the_api_is_named_and_used() -> None:
    used = {call.differs for calls in SCRIPTS.values() for call in calls if call.differs}
    assert used == set(differences.API)
    assert set(differences.BEHAVIOUR) <= set(ROWS)


async def test_every_connection_fares_alike(guardian: Guardian, ports: PortPool) -> None:
    pair = await subjects(guardian, ports)
    first = await asyncio.gather(*(compared(pair, name, STAGGER * at) for at, name in enumerate(ROWS)))
    wrong = {}
    for name, problem in zip(ROWS, first, strict=True):
        problem = problem and await again(pair, name)  # noqa: PLW2901 - the same one, looked at more closely
        if problem:
            wrong[name] = problem
    listed = set(differences.BEHAVIOUR)
    unlisted = [f"{name}: {problem}" for name, problem in wrong.items() if name not in listed]
    none = [f"{name} is listed as a difference, and is none" for name in listed if name not in wrong]
    assert not unlisted + none, "\n".join(unlisted + none)


async def again(pair: tuple[Subject, Subject], name: str) -> str:
    """Alone on the machine; a real difference is there every time."""
    problem = ""
    for _ in range(TRIES):
        problem = await compared(pair, name, 0)
        if not problem:
            break
    return problem


async def compared(pair: tuple[Subject, Subject], name: str, pause: float) -> str:
    await asyncio.sleep(pause)
    ours, theirs = await asyncio.gather(*(observed(subject, name) for subject in pair))
    alike = ours.keys() == theirs.keys() and all(_near(ours[key], theirs[key]) for key in ours)
    return "" if alike else f"\n  relay     {ours}\n  toxiproxy {theirs}"


async def observed(subject: Subject, name: str) -> Seen:
    async with asyncio.timeout(ROW_DEADLINE), stand(subject, name) as made:
        return await ROWS[name](made)


def _near(ours: object, theirs: object) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) <= max(0.015, 0.03 * max(ours, theirs))
    return ours == theirs
