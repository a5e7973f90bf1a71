"""What the leader does beside recovery (section 1): scheduling, dispatching, timeout monitoring, cancels.

Every node has these loops; only a leader's do anything. What they do is a script that looks at the lock itself, so a
node that is leader no more changes nothing even if it does not know yet.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from holdfast.reference.coordinator.messages import Payload, encode, execution
from holdfast.reference.coordinator.store import AWAY, Record

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

LOST = -1


class Duty:
    """Leader work that is looked at again and again."""

    def __init__(self, node: "Node") -> None:
        self.node = node

    def interval(self) -> float:
        raise NotImplementedError

    def should_run(self) -> bool:
        return self.node.lease.may_act()

    async def run(self) -> None:
        while True:
            if self.should_run():
                with suppress(*AWAY):
                    await self.scan()
            await self.node.clock.sleep(self.interval())

    async def scan(self) -> None:
        raise NotImplementedError

    async def act(self, script: str, **facts: Any) -> Any:
        """Runs a script that looks at the lock; returns its answer."""
        return await self.node.store.run(script, {**self.node.lease.facts(), **facts})


class Scheduler(Duty):
    def interval(self) -> float:
        return self.node.settings.schedule_scan

    async def due(self) -> list[str]:
        facts = {"count": self.node.settings.jobs_per_scan}
        return list((await self.node.store.run("due_schedules", facts))["ids"])

    async def scan(self) -> None:
        """Makes a job for each due time; one that passed while nobody led is due still."""
        while ids := await self.due():
            for id_ in ids:
                if not self.should_run() or await self.fire(id_) == LOST:
                    return

    async def fire(self, id_: str) -> int:
        answer = await self.act("fire_schedule", id=id_, jobId=self.node.ids.job_id())
        return int(answer["result"])


class Dispatcher(Duty):
    def interval(self) -> float:
        return self.node.settings.dispatch_scan

    async def due(self) -> list[Record]:
        """Returns pending jobs that are due."""
        facts = {"count": self.node.settings.jobs_per_scan}
        return list((await self.node.store.run("due_jobs", facts))["jobs"])

    async def scan(self) -> None:
        more = True
        while more:
            jobs = await self.due()
            for job in jobs:
                if not self.should_run() or await self.dispatch(job) == LOST:
                    return
            more = len(jobs) == self.node.settings.jobs_per_scan

    async def dispatch(self, job: Record) -> int:
        """Sends a job to the workers of its queue, and offers its ownership to the coordinators."""
        history_id = self.node.ids.history_id(job["jobId"])
        queue = job.get("queue") or "default"
        facts = {
            "jobId": job["jobId"],
            "historyId": history_id,
            "dispatchStream": self.node.names.channel("dispatch", queue=queue),
            "dispatchPayload": encode(self.work(job, history_id)),
            "assignedStream": self.node.names.channel("assigned"),
            "assignedPayload": encode(self.assignment(job, history_id)),
        }
        result = int((await self.act("dispatch", **facts))["result"])
        if result == 1:
            self.node.metrics.dispatched.inc()
            self.node.events.emit("job.dispatched", jobId=job["jobId"], historyId=history_id, queue=queue)
        return result

    def work(self, job: Record, history_id: str) -> Payload:
        """Returns the message to the workers."""
        return {
            "jobId": job["jobId"],
            **execution(history_id),
            "jobType": job.get("jobType", ""),
            "arguments": job.get("arguments", "{}"),
            "retryCount": _number(job.get("retryCount")),
            "maxRetries": _number(job.get("maxRetries")),
            "correlationId": job.get("correlationId") or None,
        }

    def assignment(self, job: Record, history_id: str) -> Payload:
        """Returns the offer of ownership: it names the very execution that the workers were given."""
        queue, kind = job.get("queue") or "default", job.get("jobType", "")
        stamp = self.node.clock.stamp()
        return {"jobId": job["jobId"], **execution(history_id), "queue": queue, "jobType": kind, "timestamp": stamp}


class CancelPublisher(Duty):
    def interval(self) -> float:
        return self.node.settings.dispatch_scan

    async def scan(self) -> None:
        facts = {"count": self.node.settings.jobs_per_scan}
        for job_id in (await self.node.store.run("wished_cancels", facts))["ids"]:
            await self.cancel(job_id)

    async def cancel(self, job_id: str) -> None:
        payload = encode({"jobId": job_id, "reason": None})
        stream, stamp = self.node.names.channel("cancel"), self.node.clock.stamp()
        await self.act("cancel", jobId=job_id, payload=payload, stream=stream, stamp=stamp)
        self.node.events.emit("job.cancel", jobId=job_id)


class TimeoutMonitor(Duty):
    def interval(self) -> float:
        return self.node.settings.timeout_scan

    async def scan(self) -> None:
        for job_id in (await self.act("time_out", stamp=self.node.clock.stamp()))["jobs"]:
            self.node.events.emit("job.timed_out", jobId=job_id)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() else 0
