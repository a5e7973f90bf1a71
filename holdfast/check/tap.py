"""Which node said what to Redis, and when: the tap as a check uses it.

    tap = await context.get(Tap)
    tap.commands("SET", key="leader", node="a", since=before)
    await tap.until("XADD", key="jobs.*", give_up=T.grace)

A command is noted when it is handed to Redis, so commands that a fault holds back are not there yet. A question about
what a node did *not* say holds only if nothing went past the tap: `nothing_bypassed` is the receipt, and a check that
concludes from silence asks for it.
"""

import fnmatch
from collections.abc import Sequence
from typing import Any, Self

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, NotObservable
from holdfast.check.plain import plain
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.target.tap import Command, Pushed, TapLog


class Tap:
    """What has passed between the nodes of the check's deployment and their Redis.

    A driver that uses the tap itself sets `taps = True` in its own class too: the deployment is started with it.
    """

    taps = True

    def __init__(self, context: Context, log: TapLog, T: SpecTime) -> None:
        self._context = context
        self._log = log
        self._T = T

    @classmethod
    async def provide(cls, context: Context) -> Self:
        log = context.deployment.tap()
        if log is None:
            raise NotObservable("[[node]] start with {redis}, so that the node talks to Redis through our link")
        return cls(context, log, await context.get(SpecTime))

    def commands(
        self,
        *names: str,
        key: str | None = None,
        node: str | None = None,
        since: Moment | None = None,
        until: Moment | None = None,
        script: str | None = None,
    ) -> list[Command]:
        """Commands of these names (any, if none), on keys that match the pattern, by this node, between two moments.

        The borders are generous: a command may be noted a little after the node sent it, so those that fall inside
        either end of a moment's interval count. `script` is the SHA-1 of a script, or text from its beginning.
        """
        wanted = {name.upper() for name in names}
        return [
            command
            for command in self._log.commands()
            if (not wanted or command.name in wanted)
            and (node is None or command.node == node)
            and (key is None or _touches(command, key))
            and (since is None or command.at >= since.lo)
            and (until is None or command.at <= until.hi)
            and (script is None or self._runs(command, script))
        ]

    async def until(self, *names: str, give_up: float, what: str = "", **wanted: Any) -> tuple[Command, Moment]:
        """Wait for such a command; raises Finding after `give_up` seconds."""

        async def look() -> Command | None:
            return next(iter(self.commands(*names, **wanted)), None)

        command, _ = await self._T.until(look, give_up=give_up, what=what or f"{'/'.join(names)} {wanted}")
        self.show([command])
        return command, Moment(command.at, command.at)

    def pushes(self, *channels: str, node: str | None = None) -> list[Pushed]:
        """Messages that nodes got on these channels (any, if none)."""
        return [
            pushed
            for pushed in self._log.pushes()
            if (node is None or pushed.node == node) and (not channels or set(channels) & set(pushed.words[1:-1]))
        ]

    def show(self, commands: Sequence[Command]) -> None:
        """Write these commands into the transcript, each at the time when it passed."""
        for command in commands:
            self._context.transcript.add(
                "⇢", f"{command.node} → redis {command.describe()}  ← {plain(command.reply)}", at=command.at
            )

    async def nothing_bypassed(self) -> None:
        """Prove that every client of the Redis comes through the tap and could be read; raises Inconclusive."""
        if unreadable := self._log.unreadable():
            raise Inconclusive(f"the tap could not read {'; '.join(unreadable)}")
        if strangers := await self._log.bypasses():
            raise Inconclusive(f"clients of the Redis that did not come through the tap: {'; '.join(strangers)}")
        self._context.transcript.note("receipt: every client of the Redis comes through the tap")

    def _runs(self, command: Command, script: str) -> bool:
        return command.script == script or self._log.scripts().get(command.script, "").find(script) >= 0


def _touches(command: Command, pattern: str) -> bool:
    return any(isinstance(word, str) and fnmatch.fnmatchcase(word, pattern) for word in command.words[1:])
