"""The same walk on two targets, step by step: the target under test, and another one beside it.

Each side has a model of its own, so both are judged. Where they part, three readings of the spec have spoken, and a
finding says which two of them agree: the model and the other target against this one, or both targets against the
model. What the model allows and the two do differently is no finding; it is noted, because whoever compares two
versions of a server wants to know. What only one run can say (ids, tokens, ports, moments) is left out of the
comparison. A walk that the other target breaks alone says nothing about this one and is cut short.

Both sides are made by the same check. It runs a second time on the other target, and instead of walking it lends what
makes its worlds (`Beside`).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from holdfast.check.finding import Inconclusive
from holdfast.check.walk.draw import WAIT
from holdfast.check.walk.play import Play
from holdfast.check.walk.vocabulary import Broken, Command, S, Seen, Step

# Differences that are kept; two versions that differ everywhere are told so by fewer.
_MOST = 40
_OPAQUE = re.compile(
    r"\b\w+://[^\s,;\"'}]+"  # addresses
    r"|\b(?:[a-z]{1,4}-)?(?:[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|[0-9a-fA-F]{8,})\b"  # ids
    r"|\b[\w-]*\d[\w-]*(?:[a-zA-Z_-][\w-]*\d|\d[\w-]*[a-zA-Z_-])[\w-]{6,}\b"  # tokens and names that were drawn
    r"|\btoken#\d+|\b\d+\.\d+\b|\b\d{5,}\b"  # numbered secrets, moments, ports and times
)


def normal(text: str) -> str:
    """Returns what was seen without what differs between any two runs."""
    return _OPAQUE.sub("…", text)


class Beside:
    """What the same check on the other target lends: how a world of it is made."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._begin: asyncio.Future[Callable[[], Awaitable[Any]]] = asyncio.get_running_loop().create_future()
        self._done = asyncio.Event()

    async def lend(self, begin: Callable[[], Awaitable[Any]]) -> None:
        """Hands over `begin`; returns when it is no longer needed."""
        self._begin.set_result(begin)
        await self._done.wait()

    def failed(self, error: BaseException) -> None:
        """Says that the other target could not get as far as lending anything."""
        if not self._begin.done():
            self._begin.set_exception(Inconclusive(f"{self.name}, the target beside: {error}"))

    def done(self) -> None:
        self._done.set()
        self._begin.cancel()

    async def begin(self) -> Any:
        return await (await asyncio.shield(self._begin))()


@dataclass
class Both:
    """The world as draws see it: what one of the two can't do is not drawn."""

    here: Play[Any]
    there: Play[Any]

    def can(self, command: Command) -> bool:
        return self.here.world.can(command) and self.there.makes_sense(command)

    def relation(self, command: Command) -> str:
        return self.here.world.relation(command)

    async def do(self, command: Command) -> Seen:
        return await self.here.world.do(command)

    async def close(self) -> None:
        await asyncio.gather(self.here.world.close(), self.there.world.close())


@dataclass
class Lockstep(Play[S]):
    """A walk in progress on two targets; `there` is the other one, `name` what it is called."""

    there: Play[S] = field(kw_only=True)
    name: str = field(kw_only=True)
    differences: dict[str, None] = field(default_factory=dict)
    # Whether the two went different ways, both legal: then whatever they do differently later may come of that.
    parted: bool = False

    async def perform(self, step: Step) -> None:
        """Performs one step on both at once. Raises Broken, with what the other one did, if this one breaks a rule."""
        here, there = await asyncio.gather(super().perform(step), self._there(step), return_exceptions=True)
        if isinstance(here, Broken):
            here.beside = self.story[-1].beside = self._two_against_one(there)
        if here is not None:
            raise here
        if isinstance(there, Broken):
            rows = ", ".join(there.rows)
            raise Inconclusive(f"{self.name} alone broke {rows}: {self.there.story[-1].text}, {normal(str(there))}")
        if there is not None:
            raise there
        if not self.parted:
            self._compare(race=len(step) > 1)

    async def close(self) -> None:
        await asyncio.gather(super().close(), self.there.close())

    async def _there(self, step: Step) -> None:
        # It may have parted from this one where both are right; then a deadline of this one is none of it.
        if step[0].name != WAIT or self.there.makes_sense(step[0]):
            await self.there.perform(step)

    def makes_sense(self, command: Command) -> bool:
        return super().makes_sense(command) and (command.name == WAIT or self.there.makes_sense(command))

    def _two_against_one(self, there: BaseException | None) -> str:
        what, mine = self.said[-1]
        theirs = dict(self.there.said).get(what)
        answered = f"{self.name} answered {theirs}" if theirs is not None else f"{self.name} was not asked this"
        if not isinstance(there, Broken):
            if there is not None:
                return f"{self.name} could not be judged here"
            return f"two against one: {self.name} and the model agree ({answered})"
        if theirs is not None and normal(theirs) == normal(mine):
            return f"two against one: {self.name} did the same, only the model disagrees"
        return f"three ways: {self.name} breaks the model too, differently ({there.seen})"

    def _compare(self, *, race: bool) -> None:
        """Notes what differs in this step; who wins a race is chance, and no difference of the targets."""
        theirs = dict(self.there.said)
        pairs = [(what, normal(seen), normal(theirs[what])) for what, seen in self.said if what in theirs]
        differ = [(what, here, there) for what, here, there in pairs if here != there]
        self.parted = bool(differ)
        for what, here, there in differ:
            if not race and len(self.differences) < _MOST:
                self.differences[f"{what}: {here}; {self.name}: {there}"] = None
