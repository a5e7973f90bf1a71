"""A sound intent service in memory, with a clock of its own, for walks of the model without a network.

It does what the spec says and no more. It can be told to have another habit: one that the spec leaves open, or one that
is wrong. Its API calls and its workers share one store; workers act once a tick.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.conformance.intents import wire
from holdfast.conformance.intents.walks.looks import FOREIGN
from holdfast.conformance.intents.walks.spans import OFFSETS, Spans
from holdfast.conformance.intents.walks.state import (
    BRIEF,
    DOWN,
    FAILS,
    FIRST,
    LONG,
    SLOTS,
    SLOW,
    STANDBY,
    UP,
    Key,
)
from holdfast.conformance.intents.wire import Answer

_MS = (10000, 0, 999, 9999, 10500, 10999, 11000, 60000)
SPANS = Spans(
    lease_ttl=6,
    slack=0.25,
    past_ttl=1,
    give_up=12,
    ready_never=12,
    slow=3,
    long=9,
    retry_after=1,
    renewed=2.25,
    linger=0,
    offsets=dict(zip(OFFSETS, _MS, strict=True)),
    running=frozenset({"READY"}),
)  # as at a time scale of 0.2
TICK, POLLED, RENEW = 0.05, 0.2, 2.0
RUNNING = ("STARTING", "READY")


@dataclass
class Record:
    """A session in the store, and what its worker knows of it."""

    id: str
    key: Key
    state: str = "NEW"
    reason: str = "R_NONE"
    secret: str = ""
    worker: str = ""
    ready: float = 0.0
    renewed: float = 0.0
    until: float = 0.0
    stop: bool = False
    slot: str = ""
    # Whether it was ever ready.
    ran: bool = False

    @property
    def live(self) -> bool:
        return self.state in ("NEW", *RUNNING)


@dataclass
class Service:
    habit: str = ""
    now: float = 100.0
    # When a worker has looked for sessions that nobody runs any more.
    swept: float = 0.0
    phase: int = 2
    secrets: tuple[str, str] = ("s0", "")
    workers: dict[str, str] = field(default_factory=lambda: {FIRST: UP, STANDBY: DOWN})
    records: dict[str, Record] = field(default_factory=dict)
    leases: dict[str, tuple[str, float]] = field(default_factory=dict)
    mappings: dict[tuple[str, Key], str] = field(default_factory=dict)
    bus: list[tuple[str, str]] = field(default_factory=list)
    queue: list[str] = field(default_factory=list)
    paces: dict[str, str] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    numbers: itertools.count = field(default_factory=lambda: itertools.count(1))  # type: ignore[type-arg]  # of int

    # --- time

    def pass_until(self, when: float) -> None:
        while self.now < when:
            self.now = min(when, self.now + TICK)
            self._tick()

    def _tick(self) -> None:
        self.leases = {key: each for key, each in self.leases.items() if each[1] > self.now}
        up = [name for name, how in self.workers.items() if how == UP]
        if not up:
            return
        begun = [each for each in self.records.values() if each.state in RUNNING]
        for record in begun:
            if record.worker in up:
                self._attend(record)
        if self.now >= self.swept + RENEW and self.habit != "orphans stay":
            self.swept = self.now
            for record in begun if self.habit == "gives up at once" else []:
                if self.workers[record.worker] == DOWN:
                    self._end(record, "FAILED", "R_LEASE_EXPIRED", kept=True)
            for record in begun:
                if self.workers[record.worker] == DOWN and record.until < self.now:
                    self._end(record, "FAILED", "R_LEASE_EXPIRED")
        queue, self.queue = self.queue, []
        for id_ in reversed(queue) if self.habit == "the last comes first" else queue:
            self._handle(self.records[id_], up[-1])

    # --- the worker

    def take(self, key: str, owner: str) -> bool:
        holder = self.leases.get(key, ("", 0.0))[0]
        if holder not in ("", owner) and not (self.habit == "no dedup" and "service" in key):
            return False
        self.leases[key] = owner, self.now + SPANS.lease_ttl
        return True

    def _release(self, record: Record, *keys: str) -> None:
        for key in keys:
            if self.leases.get(key, ("",))[0] == record.id or self.habit == "releases what is another's":
                self.leases.pop(key, None)

    def _handle(self, record: Record, worker: str) -> None:
        again = self.habit == "runs what comes again" and record.state == "READY"
        if record.state != "NEW" and not again:
            return
        service = f"service {record.key.target}"
        if record.stop and self.habit != "starts what was stopped":
            self._end(record, "STOPPED", "R_CLIENT_STOP")
            return
        if record.key.live:
            if not self.take(service, record.id):
                self._end(record, "FAILED", "R_LEASE_BUSY")
                return
            free = [slot for slot in self._slots() if self.take(slot, record.id)]
            if not free:
                keep = self.habit == "keeps the channel without a tuner"
                self._end(record, "FAILED", "REJECTED_NO_TUNER", kept=keep)
                return
            record.slot = free[0]
        self._run(record, worker)

    def _slots(self) -> list[str]:
        names = [f"tuner {number}" for number in range(SLOTS)]
        return [each for each in names if each not in self.leases][:1]

    def _run(self, record: Record, worker: str) -> None:
        target, pace = record.key.target, self.paces.get(record.key.target, "")
        self.runs[target] = self.runs.get(target, 0) + 1
        record.worker, record.renewed, record.until = worker, self.now, self.now + SPANS.lease_ttl
        if pace in (FAILS, BRIEF):
            self._end(record, "FAILED", "R_PROCESS_ENDED")
            return
        record.state = "STARTING"
        record.ready = self.now + {SLOW: SPANS.slow, LONG: SPANS.long}.get(pace, 0.0)

    def _attend(self, record: Record) -> None:
        if record.stop and (record.state == "READY" or self.habit != "stops only what runs"):
            self._end(record, "STOPPED", "R_CLIENT_STOP")
            return
        if record.state == "STARTING" and self.now >= record.ready:
            record.state, record.ran = "READY", True
        if self.now < record.renewed + RENEW:
            return
        record.renewed, record.until = self.now, self.now + SPANS.lease_ttl
        if record.key.live and self.habit != "renews nothing":
            keys = [f"service {record.key.target}", record.slot]
            lost = [key for key in keys if self.leases.get(key, ("",))[0] != record.id]
            if lost and self.habit != "takes a lease back":
                self._end(record, "FAILED", "R_LEASE_EXPIRED")
                return
            self.leases |= dict.fromkeys(keys, (record.id, self.now + SPANS.lease_ttl))

    def _end(self, record: Record, state: str, reason: str, *, kept: bool = False) -> None:
        record.state, record.reason = state, reason
        if not kept and self.habit != "releases nothing":
            self._release(record, f"service {record.key.target}", record.slot)

    # --- what is done to workers

    def begin(self, worker: str) -> None:
        self.workers[worker] = UP
        if worker != FIRST:
            return
        if self.habit != "flushes nothing":
            self.leases.clear()
        for record in self.records.values():
            if record.state in RUNNING and self.habit != "orphans stay":
                self._end(record, "FAILED", "R_LEASE_EXPIRED")

    def term(self, worker: str) -> None:
        for record in self.records.values():
            if record.state in RUNNING and record.worker == worker:
                self._end(record, "STOPPED", "R_CANCELLED")
        self.workers[worker] = DOWN

    # --- the API

    def start(self, key: Key) -> Answer:
        id_ = f"s{next(self.numbers)}"
        service = f"service {key.target}"
        takes = self.phase == 1 or self.habit == "takes leases in phase 2"
        if takes and key.live and (service in self.leases or not self.take(service, id_)):
            return self.problem(409, "LEASE_BUSY")
        found = self._mapped(key)
        if found is not None:
            if takes and key.live and self.leases.get(service, ("",))[0] == id_:
                del self.leases[service]
            return self.accepted(found)
        self.records[id_] = Record(id_, key, secret=self.secrets[0])
        written = self.secrets if self.habit == "writes under both secrets" else self.secrets[:1]
        self.mappings |= {(secret, key): id_ for secret in written if secret}
        self.queue.append(id_)
        self.bus += [(wire.START_EVENT, id_)] * (2 if self.habit == "publishes twice" else 1)
        return self.accepted(id_)

    def _mapped(self, key: Key) -> str | None:
        looked = self.secrets[:1] if self.habit == "forgets the previous secret" else self.secrets
        for secret in filter(None, looked):
            id_ = self.mappings.get((secret, key), "")
            record = self.records.get(id_)
            if record is not None and self._counts(record):
                return id_
        return None

    def _counts(self, record: Record) -> bool:
        if not record.live:
            return self.habit == "what has ended captures"
        if record.stop:
            return self.habit == "a stopped session still counts"
        return record.state == "NEW" or record.until > self.now

    def stop(self, id_: str) -> Answer:
        record = self.records.get(id_)
        if record is not None and record.live:
            record.stop = True
            if record.state == "NEW" and self.habit == "ends what nobody runs":
                self._end(record, "STOPPED", "R_CLIENT_STOP")
        if record is not None:
            self.bus.append((wire.STOP_EVENT, id_))
        return self.accepted(id_)

    def poll(self, id_: str) -> Answer:
        record = self.records.get(id_)
        if record is None:
            return self.problem(404, "SESSION_NOT_FOUND")
        status = 200 if record.live or self.habit == "ended sessions are 200" else 410
        return self._answer(status, {"sessionId": id_, "state": record.state, "reason": record.reason})

    def accepted(self, id_: str) -> Answer:
        return self._answer(202, {"sessionId": id_, "status": "accepted"})

    def problem(self, status: int, code: str) -> Answer:
        headers = {"Content-Type": wire.PROBLEM, "X-Request-ID": "r", **({"Retry-After": "1"} if status == 409 else {})}
        return self._answer(status, {"status": status, "code": code, "requestId": "r"}, headers)

    def _answer(self, status: int, body: dict[str, Any], headers: Mapping[str, str] | None = None) -> Answer:
        return Answer(status, headers or {"Content-Type": "application/json"}, body, "", self.now, self.now)


def seized(service: Service, key: str) -> None:
    """Gives a lease to somebody else, for longer than any walk."""
    service.leases[key] = FOREIGN, service.now + 1e6


WAYS_TO_BE_SOUND = (
    "",
    "the last comes first",
    "ends what nobody runs",
    "ended sessions are 200",
    "a stopped session still counts",
    "gives up at once",
    "refuses what it need not know",
)
WAYS_TO_BE_WRONG = (
    "no dedup",
    "renews nothing",
    "releases nothing",
    "releases what is another's",
    "keeps the channel without a tuner",
    "takes a lease back",
    "runs what comes again",
    "starts what was stopped",
    "stops only what runs",
    "flushes nothing",
    "orphans stay",
    "takes leases in phase 2",
    "what has ended captures",
    "forgets the previous secret",
    "writes under both secrets",
    "publishes twice",
    "a reader may post",
    "takes what is malformed",
)
