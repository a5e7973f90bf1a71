"""Violations of execute, maintain and clean up (3.2 steps 5 to 7)."""

import asyncio
from collections.abc import Sequence

from holdfast.reference.intents.bus import Entry
from holdfast.reference.intents.mutants.table import violates, violation
from holdfast.reference.intents.orchestrator import Orchestrator, Step
from holdfast.reference.intents.pipelines import PipelineFailed, Pipelines
from holdfast.reference.intents.runner import Runner
from holdfast.reference.intents.runs import CLIENT_STOP, NOT_STARTED, PROCESS_ENDED, SHUTDOWN, Ending, Run
from holdfast.reference.intents.store import Move


@violates("IN-RUN-01", 1, "The session stays STARTING although the pipeline is up.")
class NeverReady(Runner):
    async def report_ready(self, run: Run) -> bool:  # noqa: ARG002  # that is the violation
        return True


@violates("IN-RUN-01", 2, "READY is reported before the leases are taken, then set back to STARTING.")
class ReadyTooSoon(Orchestrator):
    async def take_session(self, run: Run) -> bool:
        early = await self.node.store.move(Move(run.id, ("NEW",), "READY"))
        if early["moved"]:
            self.tell_state(run, early, "READY", "R_NONE")
            await self.node.store.move(Move(run.id, ("READY",), "NEW"))
        return await super().take_session(run)


@violates(
    "IN-RUN-02",
    1,
    "The pipeline is started, and waited for, right after the dedup lease; the tuner lease is taken when it is up.",
)
class PipelineBeforeTuner(Orchestrator):
    async def tuner_lease(self, run: Run) -> bool:
        early = await self.node.pipelines.start(run.session)
        await self.node.pipelines.up(early)
        await self.node.pipelines.stop(run.session, early)
        return await super().tuner_lease(run)


@violates("IN-RUN-02", 2, "The tuner lease is taken only after the session was reported READY.")
class TunerAfterReady(Orchestrator):
    def lease_steps(self) -> Sequence[Step]:
        return (self.dedup_lease, self.take_session, self.tuner_later)

    async def tuner_later(self, run: Run) -> bool:
        self.node.spawn(self.once_ready(run))
        return True

    async def once_ready(self, run: Run) -> None:
        while (await self.load(run.id) or {}).get("state") == "STARTING":
            await self.node.clock.sleep(0.01)
        await asyncio.sleep(0.1)
        await self.tuner_lease(run)


@violates("IN-RUN-03", 1, "The start error is swallowed and the session stays STARTING.")
class Swallowed(Pipelines):
    async def up(self, process: asyncio.subprocess.Process) -> None:
        try:
            await super().up(process)
        except PipelineFailed:
            await asyncio.Event().wait()


class Keeps(Runner):
    """Leaves the leases to their TTL at one kind of end."""

    at: Ending

    def released(self, run: Run, ending: Ending) -> list[str]:
        return [] if ending == self.at else super().released(run, ending)


@violates("IN-RUN-03", 2, "The error path of the start skips the release.")
class KeepsAtError(Keeps):
    at = NOT_STARTED


@violates("IN-RUN-03", 3, "Leases are released only on the stop path, not when the pipeline ends by itself.")
class KeepsAtEnd(Keeps):
    at = PROCESS_ENDED


@violates("IN-RUN-04", 1, "Only the tuner lease is renewed.")
class TunerRenewed(Runner):
    def renewed(self, run: Run) -> list[str]:
        return [lease for lease in run.leases if lease.startswith("lease:tuner:")]


@violates("IN-RUN-04", 2, "Only the service lease is renewed.")
class ServiceRenewed(Runner):
    def renewed(self, run: Run) -> list[str]:
        return [lease for lease in run.leases if lease.startswith("lease:service:")]


@violates("IN-RUN-04", 3, "Renewal happens once and is not scheduled again.")
class RenewedOnce(Runner):
    async def renewals(self, run: Run) -> None:
        await self.clock.sleep(self.period())
        await self.renew_once(run)


@violates("IN-RUN-05", 1, "Renewal comes only when less than a sixth of lease_ttl is left.")
class LastMoment(Runner):
    def period(self) -> float:
        return self.node.settings.lease_ttl * 0.9


@violates(
    "IN-RUN-05", 2, "Renewal begins only when the pipeline is up, so a start slower than the TTL loses its leases."
)
class RenewedOnceUp(Runner):
    async def renewals(self, run: Run) -> None:
        while (await self.node.orchestrator.load(run.id) or {}).get("state") == "STARTING":
            await self.clock.sleep(self.node.settings.stop_poll)
        await super().renewals(run)


violation(
    "IN-RUN-05",
    3,
    "Renewal is an unconditional SET and takes the lease back.",
    lua={"renew": "write('SET', lease, owner, 'PX', whole(limits.leaseTtlMs))\nreturn true"},
)


@violates("IN-RUN-05", 4, "A failed renewal is ignored and the session runs on.")
class Ignored(Runner):
    async def renew_once(self, run: Run) -> bool:
        await super().renew_once(run)
        return True


violation(
    "IN-RUN-05",
    5,
    "Cleanup after the loss deletes the key without comparing the owner.",
    lua={"release": "write('DEL', lease)\nreturn true"},
)


class KeepsOne(Runner):
    """Leaves one of the two leases to its TTL when a session is stopped."""

    kept = ""

    def released(self, run: Run, ending: Ending) -> list[str]:
        stopped = ending == CLIENT_STOP
        return [lease for lease in run.leases if not (stopped and lease.startswith(self.kept))]


@violates("IN-RUN-06", 1, "The session is STOPPED but its service lease is left to expire.")
class KeepsService(KeepsOne):
    kept = "lease:service:"


@violates("IN-RUN-06", 2, "The service lease is released, the tuner lease left to expire.")
class KeepsTuner(KeepsOne):
    kept = "lease:tuner:"


@violates("IN-RUN-06", 3, "The renewal task is not cancelled and sets the key again after the release.")
class RenewsOn(Runner):
    async def cleanup(self, run: Run, renewal: "asyncio.Task[None]") -> None:
        await super().cleanup(run, renewal)
        self.node.spawn(self.renew_again(run))

    async def renew_again(self, run: Run) -> None:
        await self.clock.sleep(self.period() / 2)
        for lease in run.leases:
            await self.node.leases.acquire(lease, run.id)


@violates("IN-RUN-07", 1, "The worker ends its sessions in the store and exits at once, leaving the leases to the TTL.")
class KeepsAtShutdown(Keeps):
    at = SHUTDOWN


@violates("IN-RUN-07", 2, "Leases are released but the sessions stay READY in the store.")
class ReadyForEver(Runner):
    async def finish(self, run: Run, ending: Ending) -> None:
        if ending != SHUTDOWN:
            await super().finish(run, ending)
            return
        await self.node.orchestrator.on_refused(run, None)
        self.remove(run)


violation(
    "IN-RUN-08",
    1,
    "A stop is ignored until the session is READY.",
    lua={
        "look_at": """
local stop, ended = {}, {}
for _, id in ipairs(facts.sessionIds) do
  local seen = redis.call('HMGET', session_key(id), 'state', 'stopRequestedAtMs')
  if seen[1] == 'READY' and seen[2] then
    stop[#stop + 1] = id
  end
end
return {stop = stop, ended = ended}""",
        "may_move": "return facts.to == 'READY' or session.state == facts.from[1] or session.state == facts.from[2]",
    },
)


@violates("IN-RUN-08", 2, "The pipeline start is not cancelled, and READY is written after STOPPED.")
class ReadyAfterStop(Runner):
    async def cleanup(self, run: Run, renewal: "asyncio.Task[None]") -> None:
        before = await self.node.orchestrator.load(run.id)
        await super().cleanup(run, renewal)
        if before is not None and before["state"] == "STARTING":
            await self.clock.sleep(0.5)
            await self.node.link.call("HSET", f"session:{run.id}", "state", "READY")


@violates("IN-RUN-08", 3, "The worker runs every start event without looking at the session record.")
class RunsEverything(Orchestrator):
    async def handle_start(self, entry: Entry) -> None:
        if (session := await self.load(entry.session_id)) is not None:
            await self.take_and_run(Run(session, entry))


violation(
    "IN-RUN-08",
    4,
    "A second stop turns the session into FAILED.",
    lua={
        "request_stop": """
local session = load_session(facts.sessionId)
if session and not session.stopRequestedAtMs then
  publish(facts.event)
  change_session(facts.sessionId, {stopRequestedAtMs = whole(milliseconds(facts))}, facts)
elseif session and is_terminal(session.state) then
  change_session(facts.sessionId, {state = 'FAILED', reason = 'R_BAD_REQUEST'}, facts)
end
return {noted = true}"""
    },
)
