"""A session that must not be affected by what a check does beside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from holdfast.check.finding import expect
from holdfast.conformance.intents.client import Intents, Session
from holdfast.conformance.intents.wire import accepted, shown


@asynccontextmanager
async def bystander(intents: Intents) -> AsyncIterator[Session]:
    """Gives a running session; looks after the block whether it runs on, and whether another one can be started."""
    session = await intents.running()
    yield session
    running = shown(*intents.running_states)
    expect(await intents.poll(session), running, why="the session that ran before")
    expect(await intents.start(session.target, session.profile), accepted(session.id), why="its repeat")
    late = await intents.retry(intents.channel())  # a slot may be given back a moment after its session has ended
    await intents.stopped(session, late.session)
