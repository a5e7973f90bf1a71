"""Mutants that are broken by as much as one says: `--violate graded:election:22`.

They measure campaigns: how little too late a server may be and still be found.
"""

from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.mutants.table import graded


@graded("election")
def election(seconds: float) -> type[Election]:
    """Nobody runs for leader sooner than so many seconds after the last renewal."""

    class Late(Election):
        async def seek(self, peers: tuple[str, ...]) -> float:
            since = self.ttl() - (self.slot.held.expires - self.clock.monotonic())
            if self.slot.held.term and since < seconds:
                return seconds - since
            return await super().seek(peers)

    return Late
