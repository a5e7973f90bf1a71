"""One instance of a target, as the driver sees it: every call that a client makes there.

Two kinds of methods are kept apart. Plain calls (`connect`, `status`, `leave`, …) return the answer, whatever it is,
for the check to judge; `reclaim` and `admitted` do so too, with an excuse or a wait of their own. Arranging calls
(`admit`, `enqueue`, `lock`, `offer`, `attach`, `release`, `promoted`, …) make a step succeed that the check is not
about. They wait out a 503 that says when to come back. If the step fails all the same, that is a finding of the row
that owns it, and every other row is inconclusive (`Context.arranging`); a legal timeout of a busy target is
inconclusive for all. A check that judges such a step itself names its own row as `owner`.

A session without a socket goes stale by itself. `hold` and `keep` open the socket and send heartbeats, for sessions
that have to outlast a long check.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast.check.finding import Absent, Inconclusive, NotObservable, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.limiter import in_one_window
from holdfast.conformance.admission.sockets import NoSocket, Socket
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request

if TYPE_CHECKING:
    from holdfast.conformance.admission.client import Admission

# In the place of a build: the one that the target requires, whatever that is.
CURRENT = object()


@dataclass(frozen=True)
class Held:
    """A session whose socket is open and sends heartbeats."""

    character: Character
    answer: Answer
    socket: Socket


class Instance:
    """One instance of the target, which characters connect to."""

    def __init__(self, admission: "Admission", id_: str) -> None:
        self.admission = admission
        self.id = id_

    async def put(self, *, capacity: int, state: str = "accepting", node: str | None = None) -> Answer:
        self.admission.features.fits(capacity, capacity)
        request = wire.put_instance(self.id, capacity=capacity, state=state)
        return await self.admission.administer(request, "AD-ADMIT-03", node=node)

    async def drain(self, *, on: bool = True, node: str | None = None) -> Answer:
        return await self.admission.administer(wire.drain(self.id, enabled=on), "AD-DRAIN-03", node=node)

    def request(
        self,
        character: str | None,
        *,
        token: Any = None,
        replace: str | None = None,
        build: str | object | None = CURRENT,
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        """Returns a connect as it goes over the wire, for checks that send it with other credentials or bodies.

        An empty token is what an answer without one shows. It is never presented: the row that owes a token is missed.
        """
        context = self.admission.context
        if token == "":
            with context.arranging("AD-RECON-01"):
                raise Absent(["a reconnectionToken of the session"], "none was given")
        if replace == "":
            with context.arranging("AD-REPL-01"):
                raise Absent(["a replacementToken of the running session"], "none was given")
        said = self.admission.build if build is CURRENT else build
        return self.admission.codec.connect(
            self.id,
            character=character,
            build=None if said is None else str(said),
            token=token,
            replace=replace,
            extra=extra,
        )

    async def connect(
        self,
        character: Character,
        *,
        token: Any = None,
        replace: str | None = None,
        build: str | object | None = CURRENT,
        node: str | None = None,
        url: str | None = None,
        as_user: User | None = None,
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Makes one attempt and returns the answer; by default with the owner's bearer and the current build.

        `build=None` leaves the build out.
        """
        request = self.request(character.id, build=build, token=token, replace=replace, extra=extra)
        user = as_user or character.user
        return await self.admission.call(request, user, node=node, url=url, headers=headers)

    async def fail(self, character: Character, *, node: str | None = None) -> Answer:
        """Makes one attempt that counts as a failure under every reading: with a wrong build."""
        return await self.connect(character, build="old", node=node)

    async def lock(self, character: Character, *, node: str | None = None) -> Answer:
        """Fails until the limiter locks the user; returns the answer to the failure that did it."""
        limit, once = self.admission.T.count("rate_failures"), partial(self.fail, character, node=node)
        answers = [await self.admission.patiently(once) for _ in range(limit)]
        in_one_window(self.admission.T, answers)
        for answer in answers:
            with self._arranging("AD-RATE-01" if answer.reason == "RATE_LIMITED" else "AD-VER-01"):
                expect(answer, wire.refused("VERSION_MISMATCH"), why="a failure that counts")
        return answers[-1]

    async def admit(self, character: Character, *, node: str | None = None) -> Answer:
        """Connects; raises for anything but success."""
        answer = await self._attempt(character, node)
        with self._arranging("AD-ADMIT-01"):
            expect(answer, wire.success(), why="an attempt with a free slot")
        return answer

    async def enqueue(self, character: Character, *, node: str | None = None) -> Answer:
        """Connects to a full instance; raises for anything but a place in line."""
        self.admission.features.require("queue")
        answer = await self._attempt(character, node)
        with self._arranging("AD-ADMIT-02" if answer.outcome == "success" else "AD-POLL-01"):
            expect(answer, wire.queued(), why="an attempt on a full instance")
        return answer

    async def queues(
        self, character: Character, *, position: int, depth: int | None = None, node: str | None = None, why: str = ""
    ) -> Answer:
        """Connects to a full instance and judges the place that it gives; letting in is for the row about slots."""
        answer = await self.connect(character, node=node)
        with self._arranging("AD-ADMIT-02") if answer.outcome == "success" else nullcontext():
            expect(answer, wire.queued(position, depth), why=why)
        return answer

    async def _attempt(self, character: Character, node: str | None) -> Answer:
        return _in_time(await self.admission.patiently(lambda: self.connect(character, node=node)))

    def _arranging(self, owner: str) -> AbstractContextManager[None]:
        return self.admission.context.arranging(owner)

    async def fill(self, count: int) -> list[tuple[Character, Answer]]:
        """Admits `count` fresh characters, each of a user of its own."""
        people = await self.admission.characters(count)
        answers = await self.admission.parallel([lambda c=c: self.admit(c) for c in people])  # type: ignore[misc]  # lambda default
        return list(zip(people, answers, strict=True))

    async def line_up(self, count: int) -> list[Character]:
        """Enqueues `count` fresh characters one after the other; returns them in the order of the line."""
        people = await self.admission.characters(count)
        for character in people:
            await self.enqueue(character)
        return people

    async def crowd(self, count: int) -> list[Character]:
        """Enqueues `count` fresh characters at once, so that their order in the line is open."""
        people = await self.admission.characters(count)
        await self.admission.parallel([lambda c=c: self.enqueue(c) for c in people], at_once=8)  # type: ignore[misc]  # lambda default
        return people

    async def status(self, character: Character, *, node: str | None = None, as_user: User | None = None) -> Answer:
        self.admission.features.require("queue")
        request = wire.queue_status(self.id, character.id)
        return await self.admission.call(request, as_user or character.user, node=node)

    async def leave(
        self, session: str, character: Character, *, node: str | None = None, as_user: User | None = None
    ) -> Answer:
        return await self.admission.call(wire.leave(self.id, session), as_user or character.user, node=node)

    async def unqueue(self, character: Character, *, node: str | None = None, as_user: User | None = None) -> Answer:
        self.admission.features.require("queue")
        request = wire.unqueue(self.id, character.id)
        return await self.admission.call(request, as_user or character.user, node=node)

    async def release(self, session: str, character: Character, *, node: str | None = None) -> Answer:
        """Leaves; raises unless the session has ended."""
        answer = await self.admission.patiently(lambda: self.leave(session, character, node=node))
        with self._arranging("AD-RECON-09"):
            expect(answer, wire.done(), why="a leave")
        return answer

    async def withdraw(self, character: Character, *, node: str | None = None) -> Answer:
        """Leaves the queue; raises unless the place was given up."""
        answer = await self.admission.patiently(lambda: self.unqueue(character, node=node))
        with self._arranging("AD-QUEUE-08"):
            expect(answer, wire.done(), why="a leave of the queue")
        return answer

    async def offer(self, character: Character, *, node: str | None = None) -> str:
        """Connects a character that is in session; returns the replacement token offered. Raises Absent for none."""
        answer = await self._attempt(character, node)
        with self._arranging("AD-ADMIT-09"):
            expect(answer, wire.refused("ALREADY_IN_SESSION"), why="a further attempt of one in session")
        with self._arranging("AD-REPL-01"):
            if not answer.offer:
                raise Absent(["a replacementToken"], answer.describe(), "a further attempt of one in session")
        return answer.offer

    async def replaced(self, character: Character, *, node: str | None = None) -> Answer:
        """Replaces the session of a character; raises unless there is a new one."""
        offer = await self.offer(character, node=node)
        confirm = partial(self.connect, character, replace=offer, node=node)
        answer = _in_time(await self.admission.patiently(confirm))
        with self._arranging("AD-REPL-02"):
            expect(answer, wire.success(), why="a confirmed replacement")
        return answer

    async def cancel(
        self, offer: str, character: Character, *, node: str | None = None, as_user: User | None = None
    ) -> Answer:
        self.admission.features.require("cancel_replacement")
        answer = await self.admission.call(wire.cancel(self.id, offer), as_user or character.user, node=node)
        if answer.status in (404, 405, 501) and answer.outcome is None:
            raise NotObservable("a call that cancels a replacement", "[dialect] cancel_replacement = false says so")
        return answer

    async def attach(
        self,
        session: str,
        character: Character,
        *,
        node: str | None = None,
        url: str | None = None,
        owner: str = "AD-ADMIT-01",
    ) -> Socket:
        """Opens the session's WebSocket and reads its first frame; raises if it is refused."""
        socket = await self.try_attach({"sessionId": session}, character.user, node=node, url=url)
        with self._arranging(owner):
            await socket.first_frame()
        return socket

    async def try_attach(
        self, query: Mapping[str, str], user: User | None, *, node: str | None = None, url: str | None = None
    ) -> Socket:
        """Tries to open a WebSocket; the socket that comes back says whether it was accepted."""
        self.admission.features.require("sockets")
        base = (url or self.admission.url(node)).replace("http", "ws", 1)
        return await Socket.open(self.admission.context, self.admission.http, base, self.id, query, user)

    async def join(self, character: Character, *, node: str | None = None) -> tuple[Answer, Socket]:
        """Admits the character and opens its socket."""
        answer = await self.admit(character, node=node)
        return answer, await self._own_socket(answer, character, node)

    async def dropped(self, character: Character, *, node: str | None = None) -> tuple[Answer, Moment]:
        """Admits the character, opens its socket and drops it; returns the session in grace, and since when."""
        answer, socket = await self.join(character, node=node)
        return answer, await self.admission.lose(socket)

    async def reclaim(self, character: Character, token: str, *, gone: Moment, node: str | None = None) -> Answer:
        """Connects with a token that must still be valid. Raises Inconclusive if the suite itself was too late."""
        answer = await self.connect(character, token=token, node=node)
        if answer.outcome != "success" and answer.received > gone.lo + self.admission.T.token_ttl:
            raise Inconclusive(
                f"the suite presented the token {answer.received - gone.lo:.2f} s after the drop, too late"
            )
        return answer

    async def resume(self, character: Character, session: Answer, *, gone: Moment, node: str | None = None) -> Answer:
        """Reclaims a session that was lost; raises unless it is back."""
        reclaim = partial(self.reclaim, character, session.token, gone=gone, node=node)
        answer = _in_time(await self.admission.patiently(reclaim))
        with self._arranging("AD-RECON-03"):
            expect(answer, wire.success(session.session_id), why="a reconnect within the life of the token")
        return answer

    async def hold(self, character: Character | None = None, *, node: str | None = None) -> Held:
        """Admits a character and keeps its session alive, so that the slot stays taken however long the check takes."""
        owner = character or await self.admission.character()
        return await self.keep(owner, await self.admit(owner, node=node), node=node)

    async def keep(self, character: Character, answer: Answer, *, node: str | None = None) -> "Held":
        """Opens the socket of a session that was just given, and sends heartbeats."""
        socket = await self._own_socket(answer, character, node)
        socket.keep_beating(self.admission.T.heartbeat_interval / 3)
        return Held(character, answer, socket)

    async def _own_socket(self, answer: Answer, character: Character, node: str | None) -> Socket:
        """Opens the socket of a session; on a target without sockets it is one that ends the check if it is used."""
        if not self.admission.features.has("sockets"):
            return NoSocket(self.admission.context, self.admission.features)
        return await self.attach(answer.session_id, character, node=node)

    async def admitted(
        self, character: Character, *, within: float, since: Moment | None = None
    ) -> tuple[Answer, Moment]:
        """Polls until a waiting character is promoted; returns the answer, and when. Raises Finding after `within`."""

        async def look() -> Answer | None:
            answer = await self.status(character)
            return answer if answer.state == "admitted" else None

        return await self.admission.T.until(look, give_up=within, since=since, what="the promotion")

    async def promoted(self, character: Character, *, since: Moment | None = None) -> tuple[Answer, Moment]:
        """Polls until a waiting character is promoted into a slot that is free; raises if it is not."""
        with self._arranging("AD-QUEUE-10"):
            return await self.admitted(character, within=self.admission.T.promote_never, since=since)


def _in_time(answer: Answer) -> Answer:
    """Raises Inconclusive for a timeout: it is a legal answer of a busy target, but nothing is arranged by it."""
    if answer.outcome == "timeout":
        raise Inconclusive(
            f"an attempt that arranges the check ended as timeout after {answer.received - answer.sent:.1f} s"
        )
    return answer


def tally(counts: Mapping[str, int]) -> str:
    """Returns such counts in words."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items())) or "none"


def outcomes(answers: Sequence[Answer]) -> dict[str, int]:
    """Counts how often each outcome (or refusal code) came, for bursts."""
    counts: dict[str, int] = {}
    for answer in answers:
        name = (answer.reason if answer.outcome == "failed" else answer.outcome) or answer.describe()
        counts[name] = counts.get(name, 0) + 1
    return counts
