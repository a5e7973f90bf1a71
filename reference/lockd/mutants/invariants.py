"""Violations of the rules that no option changes the protocol and that every backend lists the same members."""

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.members import Active, Lease, Members
from holdfast.reference.lockd.mutants.table import violates
from holdfast.reference.lockd.registry import Registry


@violates("TC-INV-01", 1, "A start option (such as tc-disable-auth) switches RM replication or its probe off.")
class OptionalReplication(Registry):
    async def targets(self) -> list[str]:
        return [] if self.node.settings.tc_disable_auth else await super().targets()


@violates("TC-INV-01", 2, "A start option changes lease factor, loop period or quorum.")
class OptionalQuorum(Election):
    def quorum(self, n: int) -> int:
        return 1 if self.node.settings.tc_disable_auth else super().quorum(n)


@violates(
    "TC-INV-02", 1, "An identity that left is remembered as gone, so its later announces are dropped on some backends."
)
class RememberedAsGone(Members):
    gone: set[str] = set()  # noqa: RUF012  # one node a process

    async def remove(self, identity: str) -> None:
        self.gone.add(identity)
        await super().remove(identity)

    async def announce(self, identity: str, endpoint: str) -> Lease:
        if identity in self.gone - {self.node.leader_id}:
            return self.renewed(None, identity, endpoint, self.node.clock.wall_ms())
        return await super().announce(identity, endpoint)


@violates("TC-INV-02", 2, "A peer serves its list from a cache that a leave or announce does not refresh.")
class CachedList(Members):
    cached: tuple[float, Active] | None = None

    async def active(self) -> Active:
        now = self.node.clock.monotonic()
        if self.cached is None or now - self.cached[0] > 4 * self.ttl():
            self.cached = (now, await super().active())
        return self.cached[1]
