"""The target's own store, asked by the hooks of its descriptor: jobs, owners, logs, nodes, workers.

How a target keeps them is its own matter. A hook answers one JSON document; here names of members are read in any
letter case, values that are texts of JSON are read as such, and an enumeration by its name or number. Asking changes
nothing; only `seed` writes.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.check.hooks import Answer, Hooks
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.base import Base
from holdfast.conformance.coordinator.messages import Job
from holdfast.conformance.coordinator.wire import JOB_STATUSES, ORPHAN_PENDING, RUNNING, Message, enum_of

JOB, JOBS_OF, NODES, QUERY_LOGS, WORKERS = (f"query.{name}" for name in ("job", "jobs_of", "nodes", "logs", "workers"))
SEED_JOB = "seed.job"
ENQUEUE, SCHEDULE, CANCEL_JOB = (f"stimulus.{name}" for name in ("enqueue", "schedule", "cancel"))


@dataclass(frozen=True)
class Record:
    """What the store says of a job, and when it was asked; `there` is False for a job that it does not know."""

    job_id: str
    there: bool
    status: str
    owner: str
    ownership: str
    history_id: str
    error: str
    completed_at: str
    moment: Moment

    @property
    def orphan_pending(self) -> bool:
        return self.ownership.upper() == ORPHAN_PENDING

    def describe(self) -> str:
        if not self.there:
            return f"no record of {self.job_id}"
        words = {"status": self.status, "owner": self.owner, "ownership": self.ownership, "error": self.error}
        return f"{self.job_id} " + " ".join(f"{name} {value}" for name, value in words.items() if value)


class Store:
    """Questions to the store of one deployment."""

    def __init__(self, base: Base) -> None:
        self._base = base

    async def hooks(self) -> Hooks:
        """Returns the hooks of the descriptor, for this deployment."""
        return (await self._base.context.get(Hooks)).on(self._base.deployment)

    async def has(self, name: str) -> bool:
        """Whether the descriptor has this hook, by `section.name`."""
        return (await self.hooks()).has(name)

    async def _ask(self, query: str, **parameters: Any) -> Answer:
        return await (await self.hooks()).call(query, parameters)

    async def job(self, job: Job | str) -> Record:
        job_id = job if isinstance(job, str) else job.id
        answer = await self._ask(JOB, job_id=job_id)
        said = members(answer.document)
        return Record(
            job_id=job_id,
            there=bool(said.members),
            status=enum_of(said.get("status"), JOB_STATUSES) or text_of(said.get("status")),
            owner=text_of(said.get("ownerNode")),
            ownership=text_of(said.get("ownershipState")),
            history_id=said.history_id,
            error=text_of(said.get("error")),
            completed_at=text_of(said.get("completedAt")),
            moment=answer.moment,
        )

    async def jobs_of(self, node_id: str) -> set[str]:
        """Returns the ids of the unfinished jobs that this node owns."""
        return {str(each) for each in (await self._ask(JOBS_OF, node_id=node_id)).document or ()}

    async def logs(self, job: Job) -> list[str]:
        """Returns the messages of a job's log in the order in which they were stored."""
        stored = (await self._ask(QUERY_LOGS, job_id=job.id)).document or ()
        return [members(each).text("message") for each in stored]

    async def nodes(self) -> list[Message]:
        return [members(each) for each in (await self._ask(NODES)).document or ()]

    async def workers(self) -> list[str]:
        """Returns the ids of the workers that the cluster has heard."""
        return [members(each).text("workerId") for each in (await self._ask(WORKERS)).document or ()]

    async def seed(self, owner: str, status: str = RUNNING, job: Job | None = None) -> Job:
        """Puts the record of a job of this owner into the store; returns the job. NotObservable without the hook."""
        made = job or Job()
        parameters = {"job_id": made.id, "status": status, "history_id": made.history_id, "owner": owner}
        await self._ask(SEED_JOB, **parameters)
        return made

    # --- waiting for what it says

    async def becomes(
        self, job: Job, fits: Callable[[Record], bool], bound: str, *, since: Moment, what: str
    ) -> tuple[Record, Moment]:
        """Waits until the record of a job fits; judges the time against the bound; returns the record, and when."""

        async def look() -> Record | None:
            seen = await self.job(job)
            return seen if fits(seen) else None

        return await self._base.comes(look, bound, since=since, what=what)

    async def is_status(self, job: Job, status: str, bound: str, *, since: Moment) -> tuple[Record, Moment]:
        what = f"the record of {job.id} with status {status}"
        return await self.becomes(job, lambda seen: seen.status == status, bound, since=since, what=what)


def members(value: Any) -> Message:
    """Returns an object of the store, or a text that holds one, as something with members."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return Message(None, str(value))
    return Message(value if isinstance(value, Mapping) else None, str(value))


def text_of(value: Any) -> str:
    return "" if value is None else str(value)
