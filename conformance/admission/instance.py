"""One instance of a target, as the driver sees it: every call that a client makes there.

Two kinds of methods are kept apart. Plain calls (`connect`, `status`, `leave`, …) return the answer, whatever it is,
for the check to judge. Arranging calls (`admit`, `enqueue`, `fill`, `lock`, `offer`, `attach`, …) make a step succeed
that the check is not about: they raise if it does not, and a legal timeout of a busy target ends the check as
Inconclusive, because nothing was arranged and nothing was violated.

A session without a socket goes stale by itself. `hold` and `keep` open the socket and send heartbeats, for sessions
that have to outlast a long check.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.check.finding import Absent, Inconclusive, NotApplicable, expect
from holdfast.check.timeline import Moment
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.limiter import in_one_window
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.wire import Request

if TYPE_CHECKING:
    from holdfast.conformance.admission.client import Admission


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
        return await self.admission.administer(wire.put_instance(self.id, capacity=capacity, state=state), node=node)

    async def drain(self, *, on: bool = True, node: str | None = None) -> Answer:
        return await self.admission.administer(wire.drain(self.id, enabled=on), node=node)

    def request(
        self,
        character: str | None,
        *,
        token: Any = None,
        replace: str | None = None,
        build: str | None = "",
        extra: Mapping[str, Any] | None = None,
    ) -> Request:
        """Returns a connect as it goes over the wire, for checks that send it with other credentials or bodies."""
        return self.admission._codec.connect(  # noqa: SLF001 - one driver in two classes
            self.id,
            character=character,
            build=self.admission.build if build == "" else build,
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
        build: str | None = "",
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
        answers = [await self.fail(character, node=node) for _ in range(self.admission.T.count("rate_failures"))]
        in_one_window(self.admission.T, answers)
        for answer in answers:
            expect(answer, wire.refused("VERSION_MISMATCH"), why="while arranging the check")
        return answers[-1]

    async def admit(self, character: Character, *, node: str | None = None) -> Answer:
        """Connects; raises for anything but success."""
        answer = _in_time(await self.connect(character, node=node))
        expect(answer, wire.success(), why="while arranging the check")
        return answer

    async def enqueue(self, character: Character, *, node: str | None = None) -> Answer:
        """Connects to a full instance; raises for anything but a place in line."""
        answer = _in_time(await self.connect(character, node=node))
        expect(answer, wire.queued(), why="while arranging the check")
        return answer

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
        request = wire.queue_status(self.id, character.id)
        return await self.admission.call(request, as_user or character.user, node=node)

    async def leave(
        self, session: str, character: Character, *, node: str | None = None, as_user: User | None = None
    ) -> Answer:
        return await self.admission.call(wire.leave(self.id, session), as_user or character.user, node=node)

    async def unqueue(self, character: Character, *, node: str | None = None, as_user: User | None = None) -> Answer:
        request = wire.unqueue(self.id, character.id)
        return await self.admission.call(request, as_user or character.user, node=node)

    async def offer(self, character: Character, *, node: str | None = None) -> str:
        """Connects a character that is in session; returns the replacement token offered. Raises Absent for none."""
        answer = await self.connect(character, node=node)
        expect(answer, wire.refused("ALREADY_IN_SESSION"), why="while arranging the check")
        if not answer.offer:
            raise Absent(["a replacementToken"], answer.describe(), "while arranging the check")
        return answer.offer

    async def cancel(self, offer: str, character: Character, *, as_user: User | None = None) -> Answer:
        if not self.admission.features.get("cancel_replacement", True):
            raise NotApplicable("the descriptor declares no cancel of a replacement")
        return await self.admission.call(wire.cancel(self.id, offer), as_user or character.user)

    async def attach(
        self,
        session: str,
        character: Character,
        *,
        node: str | None = None,
        url: str | None = None,
        as_user: User | None = None,
    ) -> Socket:
        """Opens the session's WebSocket and reads its first frame. Raises Finding if it is refused."""
        socket = await self.try_attach({"sessionId": session}, as_user or character.user, node=node, url=url)
        await socket.first_frame()
        return socket

    async def try_attach(
        self, query: Mapping[str, str], user: User | None, *, node: str | None = None, url: str | None = None
    ) -> Socket:
        """Tries to open a WebSocket; the socket that comes back says whether it was accepted."""
        base = (url or self.admission.url(node)).replace("http", "ws", 1)
        return await Socket.open(self.admission.context, self.admission.http, base, self.id, query, user)

    async def join(self, character: Character, *, node: str | None = None) -> tuple[Answer, Socket]:
        """Admits the character and opens its socket."""
        answer = await self.admit(character, node=node)
        return answer, await self.attach(answer.session_id, character, node=node)

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

    async def hold(self, character: Character | None = None, *, node: str | None = None) -> Held:
        """Admits a character and keeps its session alive, so that the slot stays taken however long the check takes."""
        owner = character or await self.admission.character()
        return await self.keep(owner, await self.admit(owner, node=node), node=node)

    async def keep(self, character: Character, answer: Answer, *, node: str | None = None) -> "Held":
        """Opens the socket of a session that was just given, and sends heartbeats."""
        socket = await self.attach(answer.session_id, character, node=node)
        socket.keep_beating(self.admission.T.heartbeat_interval / 3)
        return Held(character, answer, socket)

    async def admitted(
        self, character: Character, *, within: float, since: Moment | None = None
    ) -> tuple[Answer, Moment]:
        """Polls until a waiting character is promoted; returns the answer, and when. Raises Finding after `within`."""

        async def look() -> Answer | None:
            answer = await self.status(character)
            return answer if answer.fields.get("state") == "admitted" else None

        return await self.admission.T.until(look, give_up=within, since=since, what="the promotion")


def _in_time(answer: Answer) -> Answer:
    """Raises Inconclusive for a timeout: it is a legal answer of a busy target, but nothing is arranged by it."""
    if answer.outcome == "timeout":
        raise Inconclusive(
            f"an attempt that arranges the check ended as timeout after {answer.received - answer.sent:.1f} s"
        )
    return answer


def outcomes(answers: Sequence[Answer]) -> dict[str, int]:
    """Counts how often each outcome (or refusal code) came, for bursts."""
    counts: dict[str, int] = {}
    for answer in answers:
        name = (answer.reason if answer.outcome == "failed" else answer.outcome) or answer.describe()
        counts[name] = counts.get(name, 0) + 1
    return counts
