"""Tuner slots as places for checks: on a deployment that many checks share, each takes what it needs and no more.

A slot that another check holds would make a session end as rejected that should run, and the target would be blamed for
it. So a check takes its places before its first session, all at once, and gives them back when its sessions have ended.
"""

import asyncio
import contextlib

# Slots of a target that says nothing: the fewest with which the suite can do its work.
FEWEST = 4
# Sessions that a check may run at a time unless it asks for more.
USUAL = 2


class Places:
    """The places of one deployment, given in the order in which they were asked for."""

    _of: dict[str, "Places"] = {}  # noqa: RUF012 - by where the deployment listens; shared by all of its checks

    def __init__(self, total: int) -> None:
        self.total = total
        self.free = total
        self._door = asyncio.Lock()
        self._freed = asyncio.Condition()

    @classmethod
    def at(cls, url: str, total: int) -> "Places":
        """Returns the places of the deployment at this address."""
        return cls._of.setdefault(url, cls(total))

    async def take(self, count: int) -> int:
        """Waits for so many places, or for all of them if there are fewer; returns how many were taken."""
        wanted = min(count, self.total)
        async with self._door, self._freed:
            await self._freed.wait_for(lambda: self.free >= wanted)
            self.free -= wanted
        return wanted

    async def give_back(self, count: int) -> None:
        with contextlib.suppress(RuntimeError):  # the loop of a run that has ended
            async with self._freed:
                self.free += count
                self._freed.notify_all()
