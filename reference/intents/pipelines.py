"""The pipeline of a session (3.2 step 5): a real child process, which tests steer through Redis.

`fake:pipeline` (hash, by service reference or recording) says how the pipeline of a target behaves: `start_delay_ms`,
`fail_start`, `exit_after_ms`. `fake:runs` counts how often it was asked to start, `fake:active` has the sessions whose
pipeline runs.
"""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.reference.intents.store import Record
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.intents.worker import Worker

PROGRAM = Path(__file__).with_name("pipeline_process.py")
STEERED, RUNS, ACTIVE = "fake:pipeline", "fake:runs", "fake:active"


class PipelineFailed(Exception):  # noqa: N818  # named for what has happened
    """The pipeline ended before it was up."""


def target_of(session: Record) -> str:
    return session["recordingId"] or session["serviceRef"]


class Pipelines:
    def __init__(self, node: "Worker") -> None:
        self.node = node

    async def start(self, session: Record) -> asyncio.subprocess.Process:
        """Starts the pipeline of a session. It is not up yet: see `up`.

        It has a process group of its own: a signal to the worker's group would end it before the worker ends the
        session, which would look like a pipeline that ended by itself.
        """
        words = self.arguments(await self.steering(session))
        self.node.events.emit("pipeline.start", sessionId=session["sessionId"])
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(PROGRAM), *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            process_group=0,
        )

    async def steering(self, session: Record) -> dict[str, Any]:
        """Counts the start and returns how this pipeline is to behave."""
        call, target = self.node.link.call, target_of(session)
        counted = call("HINCRBY", RUNS, target, 1)
        active = call("SADD", ACTIVE, session["sessionId"])
        text = await call("HGET", STEERED, target)
        await asyncio.gather(counted, active)
        with suppress(ValueError):
            given = json.loads(text or b"{}")
            return given if isinstance(given, dict) else {}
        return {}

    def arguments(self, steering: dict[str, Any]) -> list[str]:
        delay = float(steering.get("start_delay_ms", self.node.settings.pipeline_start_delay * 1000)) / 1000
        exit_after = steering.get("exit_after_ms")
        ending = "" if exit_after is None else str(float(exit_after) / 1000)
        return [str(delay), "fail" if steering.get("fail_start") else "run", ending]

    async def up(self, process: asyncio.subprocess.Process) -> None:
        """Returns once the pipeline is up; raises PipelineFailed if it ends before."""
        if process.stdout is None or not await process.stdout.readline():
            raise PipelineFailed("The pipeline did not start.")

    async def ended(self, process: asyncio.subprocess.Process) -> None:
        """Returns once the pipeline has ended by itself."""
        await process.wait()

    async def stop(self, session: Record, process: asyncio.subprocess.Process) -> None:
        """Ends the pipeline, by force if it does not end in time."""
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(self.node.settings.pipeline_stop_timeout):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
        self.node.events.emit("pipeline.stop", sessionId=session["sessionId"])
        await self.forget(session["sessionId"])

    async def forget(self, *session_ids: str) -> None:
        """Takes sessions out of the list of those with a running pipeline."""
        with suppress(RedisAway):
            if session_ids:
                await self.node.link.call("SREM", ACTIVE, *session_ids)
