"""The target as a walk meets it, with all that its clients were told: sessions, tokens, offers, open sockets.

Fresh users, characters and instances for every walk, so that walks do not see each other on a deployment that they
share. Commands name things as the client knows them; here they become ids.
"""

import math
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from holdfast.check.finding import Inconclusive
from holdfast.check.walk.vocabulary import NO_NODE, Command, Seen
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character, User
from holdfast.conformance.admission.instance import CURRENT
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.sockets import Socket
from holdfast.conformance.admission.walks.calls import Attached, Called, Records, Sockets
from holdfast.conformance.admission.walks.commands import SIBLINGS
from holdfast.conformance.admission.walks.malformed import attempt_malformed
from holdfast.conformance.admission.walks.meters import Meters
from holdfast.conformance.admission.walks.notes import Notes, named_among
from holdfast.conformance.admission.walks.pauses import stand_still
from holdfast.conformance.admission.walks.rules import Tried
from holdfast.conformance.admission.walks.state import CAPACITIES, NOWHERE, OWNERS, PEOPLE, ROOMS
from holdfast.conformance.admission.wire import Answer

NEEDS_A_SOCKET = frozenset({"drop", "close", "mute", "beat"})


class AdmissionWorld:
    """`nodes` are n1, n2, … of the model. With `done` the walk has the deployment to itself; it calls it at the end."""

    def __init__(
        self,
        admission: Admission,
        rooms: Mapping[str, Instance],
        people: Mapping[str, Character],
        nodes: list[str],
        keys: Keys | None,
        *,
        done: Callable[[], None] | None = None,
    ) -> None:
        self._admission = admission
        self._rooms = rooms
        self._people = people
        self._nodes = nodes
        self._keys = keys
        self._done = done
        self._notes = {who: Notes() for who in PEOPLE}
        self._capacities = dict(CAPACITIES)
        self._closed = dict.fromkeys(ROOMS, False)
        self._turn = 0
        self._logged: dict[str, Counter[tuple[str, str, str]]] = {who: Counter() for who in PEOPLE}
        self._down: set[str] = set()
        self._meters = Meters(admission)

    @classmethod
    async def begin(
        cls, admission: Admission, nodes: list[str], keys: Keys | None, *, done: Callable[[], None] | None = None
    ) -> "AdmissionWorld":
        users = {name: admission.user() for name in dict.fromkeys(OWNERS.values())}
        people = {who: await admission.character(users[owner]) for who, owner in OWNERS.items()}
        rooms = {where: await admission.instance(CAPACITIES[where]) for where in ROOMS}
        rooms[NOWHERE] = Instance(admission, f"no-{uuid.uuid4().hex[:12]}")
        world = cls(admission, rooms, people, nodes, keys, done=done)
        if done:
            await world._meters.read(nodes)
        return world

    async def close(self) -> None:
        """Drops all sockets; on a deployment of its own it also leaves nothing for the next walk to count."""
        try:
            if self._done:
                await self._clear()
            for notes in self._notes.values():
                for socket in (notes.socket, *(each for _, each in notes.superseded)):
                    if socket is not None:
                        await socket.discard()
        finally:
            if self._done:
                self._done()

    async def _clear(self) -> None:
        for node in list(self._down):
            await self._admission.restart(node)
        for who, character in self._people.items():
            for where in ROOMS:
                await self._rooms[where].unqueue(character)
                for session in self._notes[who].sessions[-2:]:
                    await self._rooms[where].leave(session, character)

    def can(self, command: Command) -> bool:
        who = command.get("who")
        notes = self._notes.get(who)
        if notes is None:
            return True
        if command.name in NEEDS_A_SOCKET:
            return notes.socket is not None and notes.socket.open_now
        if command.name == "cancel":
            return bool(notes.offers)
        if which := command.get("which"):
            return len(notes.sessions) > (which == "previous")
        return self._knows_token(who, command.get("token")) and self._knows_offer(who, command.get("replace"))

    def _knows_token(self, who: str, named: str) -> bool:
        return not named or bool(self._token(who, named))

    def _knows_offer(self, who: str, named: str) -> bool:
        return not named or bool(self._offer(who, named))

    def _token(self, who: str, named: str) -> str:
        return named_among(named, self._notes[who].tokens, self._notes[SIBLINGS[who]].tokens if who in SIBLINGS else [])

    def _offer(self, who: str, named: str) -> str:
        return named_among(named, self._notes[who].offers, self._notes[SIBLINGS[who]].offers if who in SIBLINGS else [])

    def relation(self, command: Command) -> str:
        node, notes = command.get("node"), self._notes.get(command.get("who"))
        if not node or notes is None or len(self._nodes) < 2 or command.name == "suspend":
            return NO_NODE
        return "same" if notes.node in ("", node) else "other"

    def _user(self, command: Command) -> User:
        """The owner, or the stranger that the command names."""
        if by := command.get("by"):
            return next(self._people[who].user for who, owner in OWNERS.items() if owner == by)
        return self._people[command.get("who")].user

    def _node(self, command: Command) -> str:
        """The node that the command names, else each in turn: what a look sees must not depend on the node."""
        if named := command.get("node"):
            return self._nodes[int(named[1:]) - 1]
        up = [node for node in self._nodes if node not in self._down]
        self._turn += 1
        return up[self._turn % len(up)]

    async def do(self, command: Command) -> Seen:
        performers: Mapping[str, Callable[[Command], Awaitable[Seen]]] = {
            "connect": self._connect,
            "lock": self._lock,
            "malformed": self._malformed,
            "leave": self._leave,
            "unqueue": self._unqueue,
            "cancel": self._cancel,
            "attach": self._attach,
            "drop": self._drop,
            "close": self._close,
            "mute": self._mute,
            "beat": self._beat,
            "drain": self._drain,
            "maintain": self._put,
            "resize": self._put,
            "suspend": self._suspend,
            "kill": self._kill,
            "restart": self._restart,
            "pause": self._pause,
            "poll": self._poll,
            "sockets": self._sockets,
            "records": self._records,
            "events": self._events,
            "metrics": self._metrics,
        }
        if command.get("node") and self.relation(command) != NO_NODE and not command.get("by"):
            self._notes[command.get("who")].node = command.get("node")
        return await performers[command.name](command)

    async def _connect(self, command: Command) -> Seen:
        who = command.get("who")
        token, offer = self._token(who, command.get("token")), self._offer(who, command.get("replace"))
        answer = await self._rooms[command.get("where")].connect(
            self._people[who],
            token=token or None,
            replace=offer or None,
            build=command.get("build") or CURRENT,
            node=self._node(command),
            as_user=self._user(command),
        )
        notes = self._notes[who]
        if answer.outcome == "success" and notes.socket is not None:
            notes.superseded.append((answer.received, notes.socket))
            notes.socket = None
        if not command.get("by"):
            notes.told(answer, command.get("where"))
        return _seen(answer, Tried(answer, token, offer))

    async def _lock(self, command: Command) -> Seen:
        room, character = self._rooms[command.get("where")], self._people[command.get("who")]
        tries = []
        for _ in range(self._admission.T.count("rate_failures")):
            answer = await room.fail(character, node=self._node(command))
            tries.append(_seen(answer, Tried(answer)))
            if answer.status == 429:
                break
        text = ", ".join(each.text for each in tries)
        return Seen(tries[0].sent, tries[-1].received, tuple(tries), text)

    async def _malformed(self, command: Command) -> Seen:
        room, person = self._rooms[command.get("where")], self._people[command.get("who")]
        answer = await attempt_malformed(command.get("call"), room, person, self._node(command))
        return _seen(answer, Tried(answer))

    async def _leave(self, command: Command) -> Seen:
        who = command.get("who")
        id_ = self._session(command)
        room = self._rooms[self._where(who)]
        answer = await room.leave(id_, self._people[who], node=self._node(command), as_user=self._user(command))
        return _seen(answer, Called(answer, id_))

    async def _unqueue(self, command: Command) -> Seen:
        room, who = self._rooms[command.get("where")], command.get("who")
        answer = await room.unqueue(self._people[who], node=self._node(command), as_user=self._user(command))
        return _seen(answer, Called(answer, who))

    async def _cancel(self, command: Command) -> Seen:
        who = command.get("who")
        offer = self._notes[who].offers[-1]
        answer = await self._rooms[self._where(who)].cancel(offer, self._people[who], node=self._node(command))
        return _seen(answer, Called(answer, offer))

    def _session(self, command: Command) -> str:
        sessions = self._notes[command.get("who")].sessions
        return sessions[-2] if command.get("which") == "previous" else sessions[-1]

    def _where(self, who: str) -> str:
        """The instance at which it was last given a session."""
        return self._notes[who].where or ROOMS[0]

    async def _attach(self, command: Command) -> Seen:
        who, sent = command.get("who"), time.monotonic()
        notes, id_ = self._notes[who], self._session(command)
        room = self._rooms[self._where(who)]
        socket = await room.try_attach({"sessionId": id_}, self._people[who].user, node=self._node(command))
        refused = await socket.was_refused()
        if socket.status == 0:
            raise Inconclusive("a socket got no answer")
        frame, now = socket.frames[0].data if socket.frames else {}, time.monotonic()
        if not refused and socket.frames:
            if notes.socket is not None:
                notes.superseded.append((now, notes.socket))
            notes.socket, notes.socket_node = socket, command.get("node")
            socket.keep_beating(self._admission.T.heartbeat_interval / 3)
        attached = Attached(id_, not refused and bool(socket.frames), frame)
        return Seen(sent, now, attached, socket.describe())

    async def _drop(self, command: Command) -> Seen:
        socket = self._taken(command)
        dropped = await self._admission.lose(socket)
        return Seen(dropped.lo, time.monotonic(), None, "")

    async def _close(self, command: Command) -> Seen:
        closed = await self._taken(command).close()
        await self._admission.T.sleep(self._admission.T.wait_tolerance, "the target to notice the close")
        return Seen(closed.lo, time.monotonic(), None, "")

    async def _mute(self, command: Command) -> Seen:
        silent = self._taken(command).mute()
        return Seen(silent.lo, silent.hi, None, "")

    async def _beat(self, command: Command) -> Seen:
        sent, socket = time.monotonic(), self._notes[command.get("who")].socket
        answered = socket is not None and await socket.answers()
        return Seen(sent, time.monotonic(), answered, "acknowledged" if answered else "not acknowledged", not answered)

    def _taken(self, command: Command) -> Socket:
        notes = self._notes[command.get("who")]
        if notes.socket is None:
            raise LookupError("the walk has no socket of this character")
        socket, notes.socket = notes.socket, None
        return socket

    async def _sockets(self, _command: Command) -> Seen:
        open_now = {who: notes.socket.open_now for who, notes in self._notes.items() if notes.socket}
        old = {
            who: min((since for since, each in notes.superseded if each.open_now), default=math.inf)
            for who, notes in self._notes.items()
        }
        now = time.monotonic()
        shown = [f"{who}'s {'open' if is_open else 'closed'}" for who, is_open in open_now.items()]
        shown += [f"{who}'s old one still open" for who, since in old.items() if since < math.inf]
        return Seen(now, now, Sockets(open_now, old), ", ".join(shown) or "no socket")

    async def _drain(self, command: Command) -> Seen:
        room, node = self._rooms[command.get("where")], self._node(command)
        return _seen(await room.drain(on=command.flag("on"), node=node), None)

    async def _put(self, command: Command) -> Seen:
        where = command.get("where")
        if command.name == "maintain":
            self._closed[where] = command.flag("on")
        else:
            self._capacities[where] = command.number("capacity")
        state = "maintenance" if self._closed[where] else "accepting"
        room, node = self._rooms[where], self._node(command)
        return _seen(await room.put(capacity=self._capacities[where], state=state, node=node), None)

    async def _suspend(self, command: Command) -> Seen:
        character, node = self._people[command.get("who")], self._node(command)
        return _seen(await self._admission.suspend(character, on=command.flag("on"), node=node), None)

    async def _kill(self, command: Command) -> Seen:
        named = command.get("node")
        died = await self._admission.kill(self._node(command))
        self._down.add(self._node(command))
        gone = tuple(who for who, notes in self._notes.items() if notes.socket and notes.socket_node == named)
        for who in gone:
            self._notes[who].socket = None
        return Seen(died.lo, died.hi, gone, f"{len(gone)} sockets gone")

    async def _restart(self, command: Command) -> Seen:
        node = self._node(command)
        back = await self._admission.restart(node)
        self._down.discard(node)
        await self._meters.read([node])
        return Seen(back.lo, time.monotonic(), None, "ready")

    async def _pause(self, command: Command) -> Seen:
        return await stand_still(self._admission, self._node(command))

    async def _poll(self, command: Command) -> Seen:
        who = command.get("who")
        answer = await self._rooms[command.get("where")].status(self._people[who], node=self._node(command))
        self._notes[who].told(answer, command.get("where"))
        return _seen(answer, answer)

    async def _metrics(self, _command: Command) -> Seen:
        return await self._meters.scrape([node for node in self._nodes if node not in self._down])

    async def _events(self, _command: Command) -> Seen:
        """Reads the lines about our characters that have come since the last look."""
        now, new = time.monotonic(), list[tuple[str, str, str]]()
        for who, character in self._people.items():
            records = self._admission.events(characterId=character.id)
            lines = Counter(
                (str(record.get("event")), who, str(record.get("reason") or ""))
                for record in records
                if str(record.get("event")).startswith("connection.")
            )
            new += (lines - self._logged[who]).elements()
            self._logged[who] = lines
        text = ", ".join(" ".join(filter(None, line)) for line in new)
        return Seen(now, now, tuple(new), text or "nothing new")

    async def _records(self, _command: Command) -> Seen:
        keys, sent = self._keys, time.monotonic()
        if keys is None:
            raise LookupError("the walk has no Redis to look into")
        names = {character.id: who for who, character in self._people.items()}
        markers = [("GET", keys.name("session_char", self._people[who].id)) for who in PEOPLE]
        lines = [("ZRANGE", keys.name("queue_pending", self._rooms[where].id), "0", "-1") for where in ROOMS]
        counts = [("SCARD", keys.name("session_instance", self._rooms[where].id)) for where in ROOMS]
        found = await keys.together(*markers, *lines, *counts)
        marked = dict(zip(PEOPLE, (str(each or "") for each in found[: len(PEOPLE)]), strict=True))
        rest = found[len(PEOPLE) :]
        lined = {
            where: tuple(names.get(str(each), str(each)) for each in line)
            for where, line in zip(ROOMS, rest[: len(ROOMS)], strict=True)
        }
        counted = {where: int(each) for where, each in zip(ROOMS, rest[len(ROOMS) :], strict=True)}
        text = f"markers of {', '.join(who for who, each in marked.items() if each) or 'nobody'}; "
        text += "; ".join(f"{where}: {counted[where]} inside, line {', '.join(lined[where]) or '-'}" for where in ROOMS)
        return Seen(sent, time.monotonic(), Records(marked, lined, counted), text)


def _seen(answer: Answer, what: object) -> Seen:
    return Seen(answer.sent, answer.received, what, answer.describe(), answer.late)
