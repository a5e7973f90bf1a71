"""IJobOwnershipStore: which node owns which jobs, kept outside all processes.

Every change of owner gives the job a new epoch. What a node does to a job it does under the epoch in which it got it,
so one that has lost a job, and does not know it yet, can do no harm.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node

CLAIMED, MINE, TAKEN, UNKNOWN, FINISHED = 1, 2, 0, -1, -2
OWNED, HANDING_OFF, ORPHAN_PENDING = "Owned", "HandingOff", "ORPHAN_PENDING"


@dataclass(frozen=True)
class Job:
    """A job as its owner knows it."""

    id: str
    history_id: str
    epoch: int


@dataclass(frozen=True)
class Claim:
    """What became of a claim; `former` is the owner before this one."""

    result: int
    job: Job
    former: str

    @property
    def mine(self) -> bool:
        return self.result in {CLAIMED, MINE}


@dataclass(frozen=True)
class Orphan:
    """An unfinished job whose owner, `owner` by the store, is dead or has given it up."""

    id: str
    history_id: str
    owner: str


class JobOwnershipStore:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def claim(self, job_id: str, expected: str, **new: Any) -> Claim:
        """Claims a job whose owner is `expected`, empty for none. `new` describes a job that may have no record yet."""
        words = {"historyId": "", "jobType": "", "queue": "", **new}
        facts = {"jobId": job_id, "owner": self.node.id, "expected": expected, "create": bool(new), **words}
        answer = await self.node.store.run("claim", facts)
        job = Job(job_id, answer.get("historyId", ""), int(answer.get("epoch", 0)))
        return Claim(answer["result"], job, answer.get("former", ""))

    async def mark(self, job: Job, state: str) -> bool:
        """Notes the state of the ownership; False if the job is another's, or finished."""
        facts = {"jobId": job.id, "owner": self.node.id, "epoch": job.epoch, "state": state}
        return bool((await self.node.store.run("mark", facts))["marked"])

    async def release(self, job: Job, new_owner: str) -> bool:
        """Gives a job away; False if the new owner has moved it already."""
        facts = {"jobId": job.id, "owner": self.node.id, "epoch": job.epoch, "newOwner": new_owner}
        return bool((await self.node.store.run("release", facts))["released"])

    async def jobs(self, *, anew: bool = False) -> dict[str, Job]:
        """Returns this node's unfinished jobs; `anew` gives each a new epoch, for a process that has just started."""
        answer = await self.node.store.run("resume", {"owner": self.node.id, "anew": anew})
        found = (Job(each["jobId"], each["historyId"], int(each["epoch"])) for each in answer["jobs"])
        return {job.id: job for job in found}

    async def owners(self) -> set[str]:
        return await self.node.store.members("owners")

    async def orphans(self, dead: set[str]) -> list[Orphan]:
        answer = await self.node.store.run("find_orphans", {"dead": sorted(dead)})
        return [Orphan(each["jobId"], each["historyId"], each["owner"]) for each in answer["orphans"]]
