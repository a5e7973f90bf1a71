"""Performs the commands of a walk on an intent service in memory."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from holdfast.check.walk.play import Clock
from holdfast.check.walk.vocabulary import NO_NODE, Command, Seen
from holdfast.conformance.intents.walks.clients import CLIENTS
from holdfast.conformance.intents.walks.commands import CURRENT, NOBODIES, OPTIONAL, PREVIOUS, START, UNKNOWN, key_of
from holdfast.conformance.intents.walks.looks import FOREIGN
from holdfast.conformance.intents.walks.sights import Entry, Lease, Met, Started, Stopped, Stored
from holdfast.conformance.intents.walks.state import CHANNELS, DOWN, SLOTS, STILL, UP, Key, secrets_after
from holdfast.conformance.intents.wire import Answer
from tests.conformance.intents.sound_service import POLLED, RENEW, RUNNING, SPANS, Record, Service, seized

TAKES = 0.01


@dataclass
class MemoryWorld:
    service: Service = field(default_factory=Service)
    told: dict[Key, list[str]] = field(default_factory=dict)
    published: int = 0
    closed: bool = False

    def clock(self) -> Clock:
        async def sleep(seconds: float, _why: str) -> None:
            self.service.pass_until(self.service.now + seconds)

        return Clock(lambda: self.service.now, sleep)

    def can(self, command: Command) -> bool:
        needed = {CURRENT: 1, PREVIOUS: 2}.get(command.get("which"), 0)
        return not needed or len(self.told.get(key_of(command, SPANS), [])) >= needed

    def relation(self, command: Command) -> str:
        if command.name not in (START, "stop") or command.get("with") or command.get("which") == UNKNOWN:
            return NO_NODE
        return "same" if command.get("node") == "n1" else "other"

    async def close(self) -> None:
        self.closed = True

    async def do(self, command: Command) -> Seen:
        sent = self.service.now
        name = {"turn back": "secrets", "rotate": "secrets", "forget": "secrets"}.get(command.name, command.name)
        what = getattr(self, f"_{name}")(command)
        self.service.pass_until(max(self.service.now, sent + TAKES))
        return Seen(sent, sent + TAKES if isinstance(what, Stopped) else self.service.now, what, str(what))

    @property
    def living(self) -> list[Record]:
        return [each for each in self.service.records.values() if each.live]

    # --- intents

    def _start(self, command: Command) -> Started:
        key, way = key_of(command, SPANS), command.get("with")
        if way in OPTIONAL and self.service.habit == "refuses what it need not know":
            return Started(self.service.problem(400, "INVALID_INPUT"))
        answer = self.service.start(key)
        if answer.status != 202 or any(answer.session_id in ids for ids in self.told.values()):
            return Started(answer)
        self.told.setdefault(key, []).append(answer.session_id)
        return Started(answer, self._decided([answer.session_id])[answer.session_id])

    def _decided(self, ids: Iterable[str]) -> dict[str, Answer]:
        """Passes time until workers have dealt with these sessions; returns what they show."""
        if UP in self.service.workers.values():
            self.service.pass_until(self.service.now + POLLED)
        return {id_: self.service.poll(id_) for id_ in ids}

    def _ended(self, id_: str) -> dict[str, Answer]:
        until = self.service.now + SPANS.give_up
        record = self.service.records.get(id_)
        while record is not None and record.live and self.service.now < until:
            self.service.pass_until(self.service.now + POLLED)
        return {id_: self.service.poll(id_)}

    def _id(self, command: Command) -> str:
        told = self.told.get(key_of(command, SPANS), [])
        place = {PREVIOUS: 2, UNKNOWN: len(told) + 1}.get(command.get("which"), 1)
        return told[-place] if place <= len(told) else "nobody"

    def _attended(self, id_: str) -> bool:
        record = self.service.records.get(id_)
        if record is None or not record.live:
            return False
        workers = self.service.workers
        return workers.get(record.worker) == UP if record.state in RUNNING else UP in workers.values()

    def _stop(self, command: Command) -> Stopped:
        id_ = self._id(command)
        waits = self._attended(id_)
        answer = self.service.stop(id_)
        if not waits:
            return Stopped(answer, id_)
        record = self.service.records[id_]
        began = record.state == "READY"
        shown = self._ended(id_)[id_]
        return Stopped(answer, id_, shown, began or record.ran, self.service.now)

    def _refused(self, command: Command) -> Answer:
        if command.get("by") in NOBODIES:
            return self.service.problem(401, "UNAUTHORIZED")
        if self.service.habit == "a reader may post" and command.get("what") == START:
            return self.service.start(key_of(command, SPANS))
        return self.service.problem(403, "FORBIDDEN")

    def _malformed(self, command: Command) -> Answer:
        by = command.get("by")
        if by:
            status, code = (401, "UNAUTHORIZED") if by in NOBODIES else (403, "FORBIDDEN")
            return self.service.problem(status, code)
        if self.service.habit == "takes what is malformed" and command.get("call") == "a blank channel":
            return self.service.start(key_of(command, SPANS))
        return self.service.problem(400, "INVALID_INPUT")

    def _forwarded(self, command: Command) -> Answer:
        inside = CLIENTS[command.get("client")].inside
        return self.service.problem(400, "INVALID_INPUT") if inside else self.service.problem(403, "FORBIDDEN")

    def _lost(self, command: Command) -> Answer:
        key, service = key_of(command, SPANS), self.service
        if service.phase == 1 and key.live and f"service {key.target}" in service.leases:
            return service.problem(409, "LEASE_BUSY")
        return service.problem(503, "SERVICE_UNAVAILABLE")

    def _ask(self, _command: Command) -> Answer:
        return self.service.poll("nobody")

    # --- pipelines, events and leases

    def _pace(self, command: Command) -> None:
        self.service.paces[command.get("target")] = command.get("how")

    def _redeliver(self, command: Command) -> None:
        self.service.queue.append(self._id(command))
        self._decided([])

    def _seize(self, command: Command) -> Met:
        return self._taken(command, foreign=True)

    def _lose(self, command: Command) -> Met:
        return self._taken(command, foreign=False)

    def _taken(self, command: Command, *, foreign: bool) -> Met:
        service, channel = self.service, f"service {command.get('target')}"
        holder = service.leases.get(channel, ("", 0.0))[0]
        key = channel if command.get("lease") == "service" else self._slot_of(holder)
        if command.get("lease") == "slot":
            holder, key = "", self._slot_of("")
        service.leases.pop(key, None)
        if foreign:
            seized(service, key)
        return Met(self._ended(holder) if self._attended(holder) and service.records[holder].worker else {})

    def _slot_of(self, owner: str) -> str:
        names = [f"tuner {number}" for number in range(SLOTS)]
        return next((each for each in names if self.service.leases.get(each, ("",))[0] == owner), names[0])

    def _yield(self, _command: Command) -> None:
        leases = self.service.leases
        self.service.leases = {key: each for key, each in leases.items() if each[0] != FOREIGN}

    # --- workers and APIs

    def _kill(self, command: Command) -> None:
        self.service.workers[command.get("worker")] = DOWN

    def _term(self, command: Command) -> Met:
        shown = [each.id for each in self.living]
        self.service.term(command.get("worker"))
        return Met({id_: self.service.poll(id_) for id_ in shown})

    def _stand(self, command: Command) -> None:
        self.service.workers[command.get("worker")] = STILL

    def _resume(self, command: Command) -> Met:
        shown = [each.id for each in self.living]
        self.service.workers[command.get("worker")] = UP
        self.service.pass_until(self.service.now + RENEW)
        return Met(self._decided(shown))

    def _begin(self, command: Command) -> Met:
        shown = [each.id for each in self.living]
        self.service.begin(command.get("worker"))
        return Met(self._decided(shown))

    def _restart(self, _command: Command) -> None:
        return None

    def _flip(self, _command: Command) -> None:
        self.service.phase = 3 - self.service.phase

    def _secrets(self, command: Command) -> None:
        self.service.secrets = secrets_after(self.service.secrets, command.name)

    # --- looks

    def _polls(self, _command: Command) -> dict[str, Answer]:
        return {id_: self.service.poll(id_) for ids in self.told.values() for id_ in ids}

    def _runs(self, command: Command) -> dict[str, int]:
        named = command.get("target")
        return {named: self.service.runs.get(named, 0)} if named else dict(self.service.runs)

    def _stored(self, _command: Command) -> Stored:
        service = self.service
        new, self.published = service.bus[self.published :], len(service.bus)
        ours = {id_ for ids in self.told.values() for id_ in ids}
        return Stored(
            {channel: self._lease(f"service {channel}") for channel in CHANNELS},
            tuple(self._lease(f"tuner {number}") for number in range(SLOTS)),
            dict(service.mappings),
            {id_: each.state for id_, each in service.records.items() if id_ in ours},
            tuple(sorted(service.records.keys() - ours)),
            tuple(Entry(kind, id_, sound=True) for kind, id_ in new),
        )

    def _lease(self, key: str) -> Lease:
        owner, until = self.service.leases.get(key, ("", 0.0))
        return Lease(owner, until - self.service.now if owner else None)
