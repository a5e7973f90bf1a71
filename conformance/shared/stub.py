"""A stub: a peer of the target that the suite itself plays, as a record of calls and a script of replies.

To the check a stub is a record (`calls`, in the order of arrival) and a script (`on`): a reply, or a function of the
call, per path; a path is whatever names a call of the protocol. Without a script it answers as a friendly peer would
(`friendly`). The transcript shows each call together with what the stub answered. This module is the part that knows no
transport; `http_stub` serves it over HTTP.

A stub runs on the harness's own loop, so its answers can be late through no fault of the target, and the target may
then treat it as unreachable. So each stub measures its own lag, from the connection on: to the caller a handshake that
takes long is as late as an answer. A check that judges what the target did because of this stub does it inside
`excused`: if the stub ever answered later than its `deadline`, a finding becomes Inconclusive. Past twice the deadline
the target may have given the stub up altogether, and no finding of the check counts, wherever it was made.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from holdfast.check.finding import Finding, Inconclusive, Unsafe
from holdfast.check.timeline import Moment
from holdfast.conformance.shared.wire import as_said
from holdfast.conformance.shared.work import Work

# Deadlines of a stub after which a caller may have given it up.
_GIVEN_UP = 2


@dataclass(frozen=True)
class Reply:
    """What a stub answers, after `hold` seconds; with `hangs_up` it cuts the connection instead."""

    status: int = 200
    body: Mapping[str, Any] = field(default_factory=dict)
    hold: float = 0.0
    hangs_up: bool = False

    def describe(self) -> str:
        return "hung up" if self.hangs_up else " ".join([str(self.status), *described(self.body)])


def described(body: Mapping[str, Any]) -> list[str]:
    """Returns the members of a JSON object for people: texts as they are, everything else as JSON."""
    return [f"{name}={as_said(value)}" for name, value in body.items()]


@dataclass
class Call:
    """One call that a stub got.

    `at` is when it arrived, `answered` when the reply was ready (None: never), `opening` the seconds that its
    connection took before; 0 for one that was open already.
    """

    at: float
    path: str
    body: Mapping[str, Any]
    answered: float | None = field(default=None, kw_only=True)
    opening: float = field(default=0.0, kw_only=True)
    reply: Reply | None = field(default=None, kw_only=True)

    @property
    def moment(self) -> Moment:
        return Moment(self.at, self.at)

    def describe(self) -> str:
        return " ".join([self.path, *described(self.body)])

    def exchange(self) -> str:
        """Returns the call and what came of it: the line of a transcript."""
        return f"{self.describe()}  ← {self.reply.describe() if self.reply else 'no answer yet'}"


C = TypeVar("C", bound=Call)


class Stub(Generic[C]):
    """Records calls and answers them by script. `deadline` is the seconds within which it should answer itself."""

    def __init__(self, work: Work, name: str, deadline: float) -> None:
        self.name = name
        self.calls: list[C] = []
        self.script: dict[str, Reply | Callable[[C], Reply]] = {}
        self.worst_lag = 0.0
        self.deadline = deadline
        self._work = work

    def on(self, path: str, script: Reply | Callable[[C], Reply]) -> None:
        """Answers calls on this path with the script from now on."""
        self.script[path] = script

    def off(self, *paths: str) -> None:
        """Answers calls on these paths as a friendly peer again."""
        for path in paths:
            self.script.pop(path, None)

    def friendly(self, _call: C) -> Reply:
        """Returns what a peer answers that has nothing against the call."""
        return Reply()

    def accepted(self, call: C) -> None:
        """Called for each call that is answered with 200, before the reply goes out."""

    async def take(self, call: C) -> Reply:
        """Records the call and returns its reply, after the time that the script holds it back."""
        self.calls.append(call)
        self._work.context.transcript.add("⇢", lambda: f"{self.name}: {call.exchange()}")
        reply = call.reply = self._reply(call)
        if reply.hold:
            await asyncio.sleep(reply.hold)
        self._note_lag(call, reply.hold)
        if not reply.hangs_up:
            call.answered = time.monotonic()
        return reply

    def _reply(self, call: C) -> Reply:
        script = self.script.get(call.path)
        reply = script(call) if callable(script) else script
        if reply is None:
            reply = self.friendly(call)
        if reply.status == 200 and not reply.hangs_up:
            self.accepted(call)
        return reply

    def _note_lag(self, call: C, hold: float) -> None:
        lag = call.opening + time.monotonic() - call.at - hold
        self.worst_lag = max(self.worst_lag, lag)
        if lag > self.deadline:
            self._work.context.transcript.note(f"{self.name} answered {call.path} {lag:.2f} s late")
        if lag > _GIVEN_UP * self.deadline:
            self._work.context.late_stub = self.was_late

    def got(
        self, path: str, *, since: Moment | None = None, where: Callable[[C], bool] = lambda _call: True
    ) -> list[C]:
        """Returns the calls on this path, from a moment on."""
        start = since.lo if since else 0.0
        return [call for call in self.calls if call.path == path and call.at >= start and where(call)]

    async def receives(
        self,
        path: str,
        bound: str,
        *,
        since: Moment | None = None,
        where: Callable[[C], bool] = lambda _call: True,
        count: int = 1,
        times: float = 1.0,
        what: str = "",
        judged: bool = True,
    ) -> C:
        """Waits for the `count`-th call on this path and judges its time against `times` bounds; returns the call.

        Raises Finding after `times` times what `T.never(bound)` says. Unless `judged`, the bound itself means nothing.
        """
        T = self._work.T
        start = since or T.now()
        name = what or f"{path} at {self.name}"

        async def look() -> C | None:
            found = self.got(path, since=start, where=where)
            return found[count - 1] if len(found) >= count else None

        with self.excused():
            call, _ = await T.until(look, give_up=times * T.never(bound), since=start, what=name)
        if judged:
            T.at_most(bound, since=start, seen=call.moment, times=times, what=name)
        return call

    @property
    def was_late(self) -> str:
        """Says by how much the stub was late itself; empty if it never was."""
        if self.worst_lag <= self.deadline:
            return ""
        return f"{self.name}, a peer played by the suite, was itself {self.worst_lag:.2f} s late"

    @contextlib.contextmanager
    def excused(self) -> Iterator[None]:
        """Put around judgements that rest on this stub: turns a finding into Inconclusive if the stub was late.

        What is `Unsafe` stays a finding: no delay explains it.
        """
        try:
            yield
        except Unsafe:
            raise
        except Finding as finding:
            if not self.was_late or not finding.excusable:
                raise
            raise Inconclusive(f"{self.was_late}: {finding}") from finding
