"""The generator: a Locust user that starts requests when they are due, and what workers and master tell each other.

Theory of operation. Locust is closed: a user waits for its answer before it goes on, so a target that stalls is asked
less often, and what it did to those who would have come meanwhile is never measured. Here each worker has one user
whose single task walks through the list of due times and starts one greenlet for each. It waits for no answer. A
request that can't be started because too many are in flight is shed, and counted. Latency runs from the due time.

Everything that crosses processes goes through Locust's own messages, so one process, `--processes` and many machines
are the same to us. In the order in which they come:

    plan    to each worker   the whole plan, and which share of the arrivals is its own
    clock   both ways        the master's clock, unless both run on one machine, where the clock is the same
    ready   to the master    the worker has arranged what the campaign needs
    go      to all           when the campaign begins, on the master's clock
    part    to the master    what happened since the last part (see `ledger`); the last one ends the worker's work
    refused to the master    why the campaign can't begin

The master appends parts to a file as they come. It quits when all workers have sent their last one, or one is gone.
"""

import gc
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, ClassVar

import gevent
from gevent.event import Event
from gevent.pool import Group, Pool
from locust import FastHttpUser, constant, events, task
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from holdfast.check.history import Operation, Outcome
from holdfast.conformance.shared.wire import Answer, Request, parse_body
from holdfast.load.arrivals import share
from holdfast.load.ledger import Ledger
from holdfast.load.plan import Plan

_PART_EVERY = 1.0
_LEAD = 0.3
_CLOCK_TRIES = 5
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ARRANGING_AT_ONCE = 16


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """Raised while arranging when the campaign can't begin; the text is one sentence for the report."""


def boot() -> str:
    """Returns what is the same for all processes of one machine since it was started."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


class Stage:
    """What the messages of this process have said so far; one for each process."""

    def __init__(self) -> None:
        self.plan: Plan | None = None
        self.worker, self.workers = 0, 1
        self.planned, self.told_time, self.going = Event(), Event(), Event()
        self.went: dict[str, Any] = {}
        self.clock: dict[str, Any] = {}


STAGE = Stage()


class Director:
    """The master's side, which is also the only side of a run in one process."""

    def __init__(self, environment: Environment, plan: Plan) -> None:
        self._environment = environment
        self._plan = plan
        self._out: IO[str] = Path(plan.out).open("a", encoding="utf-8")  # noqa: SIM115 - open until the process ends
        self._ready: set[str] = set()
        self._done: set[str] = set()
        self._workers = 1
        self._over = False

    def listen(self) -> None:
        for name, handler in (("ready", self._on_ready), ("part", self._on_part), ("refused", self._on_refused)):
            self._runner.register_message(name, handler)
        self._runner.register_message("clock", self._on_clock)

    @property
    def _runner(self) -> Any:
        return self._environment.runner

    def begin(self) -> None:
        """Gives each worker the plan and its share."""
        ids = list(self._runner.clients) if isinstance(self._runner, MasterRunner) else ["local"]
        self._workers = len(ids)
        for number, client in enumerate(ids):
            said = {"plan": self._plan.text(), "worker": number, "workers": len(ids), "boot": boot()}
            self._runner.send_message("plan", said, client_id=client)
        gevent.spawn(self._watch)

    def _on_ready(self, environment: Environment, msg: Any, **_more: Any) -> None:
        del environment
        self._ready.add(str(msg.data["worker"]))
        if len(self._ready) == self._workers:
            at = time.monotonic() + _LEAD
            self._write({"kind": "start", "at": at, "wall": time.time() + _LEAD, "workers": self._workers})
            self._runner.send_message("go", {"at": at})

    def _on_clock(self, environment: Environment, msg: Any, **_more: Any) -> None:
        del environment
        asked = {**msg.data, "master": time.monotonic()}
        self._runner.send_message("time", asked, client_id=msg.node_id)

    def _on_part(self, environment: Environment, msg: Any, **_more: Any) -> None:
        del environment
        self._write(msg.data)
        if msg.data["totals"] is not None:
            self._done.add(msg.data["worker"])
        if len(self._done) == self._workers:
            self.end()

    def _on_refused(self, environment: Environment, msg: Any, **_more: Any) -> None:
        del environment
        self._write({"kind": "refused", "why": str(msg.data["why"])})
        self.end()

    def _watch(self) -> None:
        """Ends the campaign when a worker is gone: what it knew is lost, and the others need not go on."""
        while not self._over:
            gevent.sleep(_PART_EVERY)
            if isinstance(self._runner, MasterRunner) and not self._over and self._gone():
                self.end()

    def _gone(self) -> bool:
        alive = sum(client.state != "missing" for client in self._runner.clients.values())
        return bool(alive + len(self._done) < self._workers)

    def end(self) -> None:
        if self._over:
            return
        self._over = True
        self._write({"kind": "locust", "stats": _locust_numbers(self._environment)})
        gevent.spawn_later(0.1, self._runner.quit)

    def _write(self, record: Mapping[str, Any]) -> None:
        self._out.write(json.dumps(record, ensure_ascii=False) + "\n")
        self._out.flush()


def _locust_numbers(environment: Environment) -> dict[str, dict[str, float]]:
    """Returns what Locust itself shows for each operation, in seconds."""
    return {
        name: {
            **{f"p{100 * q:g}": entry.get_response_time_percentile(q) / 1000 for q in (0.5, 0.9, 0.95, 0.99)},
            "requests": entry.num_requests,
        }
        for (name, _method), entry in environment.stats.entries.items()
    }


class OpenUser(FastHttpUser):
    """One worker's part of a campaign. A spec's user says what an arrival does (`behaviours`)."""

    abstract = True
    wait_time = constant(0)
    host = "http://127.0.0.1"
    max_retries = 0
    behaviours: ClassVar[Mapping[str, Callable[[Any], "Behaviour"]]]
    answer: ClassVar[type[Answer]] = Answer

    def __init__(self, environment: Environment) -> None:
        STAGE.planned.wait()
        assert STAGE.plan is not None
        self.plan = STAGE.plan
        self.network_timeout = self.connection_timeout = self.plan.patience
        self.concurrency = self.plan.in_flight
        super().__init__(environment)
        # Set once for all requests: Locust's own parameter changes it for a moment, under the feet of all others.
        agent: Any = self.client.client
        agent.redirect_response_codes = frozenset()
        self.ledger = Ledger(f"{STAGE.worker}")
        self.began = 0.0
        self._shift = self._doubt = 0.0
        self._later: Any = Group()

    @task
    def campaign(self) -> None:
        try:
            behaviour = self.behaviours[self.plan.user](self)
            behaviour.arrange()
        except Refused as refusal:
            self.environment.runner.send_message("refused", {"why": str(refusal)})
            gevent.sleep(3600)
        self._synchronise()
        self.environment.runner.send_message("ready", {"worker": STAGE.worker})
        STAGE.going.wait()
        self.began = float(STAGE.went["at"]) - self._shift
        sending = gevent.spawn(self._send_parts)
        with _no_collector():
            self._arrivals(behaviour)
        self._later.join(timeout=self.plan.patience + self.plan.numbers.get("stay", 0.0))
        if left := len(self._later):
            self.ledger.notes.append(f"{left} steps that follow arrivals had not ended")
        behaviour.finish()
        sending.kill()
        self._send(last=True)
        gevent.sleep(3600)

    def _arrivals(self, behaviour: "Behaviour") -> None:
        pool: Any = Pool(self.plan.in_flight)
        for number, offset in share(self.plan.due(), STAGE.worker, STAGE.workers):
            due = self.began + offset
            while (left := due - time.monotonic()) > 0:
                gevent.sleep(left)
            if pool.full():
                self.ledger.shed()
            else:
                pool.spawn(self._one, behaviour, number, due)
        pool.join(timeout=2 * self.plan.patience)

    def _one(self, behaviour: "Behaviour", number: int, due: float) -> None:
        self.ledger.started(time.monotonic() - due)
        if self._guarded(f"arrival {number}", behaviour.arrive, number, due):
            self.ledger.ended()

    @property
    def first(self) -> int:
        """Which of the workers this is; it starts every `of`-th arrival, beginning with this one."""
        return STAGE.worker

    @property
    def of(self) -> int:
        return STAGE.workers

    def later(self, seconds: float, work: Callable[..., None], *arguments: Any) -> None:
        """Calls `work` after so many seconds; the campaign ends only after that."""

        def run() -> None:
            gevent.sleep(seconds)
            self._guarded(f"what follows {seconds:g} s later", work, *arguments)

        self._later.start(gevent.Greenlet(run))

    def _guarded(self, what: str, work: Callable[..., None], *arguments: Any) -> bool:
        """Does the work; returns whether it ended well. One step that breaks must not end the campaign, nor hide."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self.ledger.notes.append(f"{what}: {type(error).__name__}: {error}")
            return False
        return True

    def together(self, calls: list[Callable[[], Any]]) -> list[Any]:
        """Makes calls that only arrange something, some at a time; returns their results in order."""
        pool: Any = Pool(_ARRANGING_AT_ONCE)
        return list(pool.map(lambda call: call(), calls))

    def ask(self, request: Request, name: str, *, node: int = 0, headers: Mapping[str, str] | None = None) -> Answer:
        """Sends one request and returns its answer; status 0 means that there was none, and the text says why."""
        url = self.plan.nodes[node % len(self.plan.nodes)].url + request.path
        said = {**request.headers, **(headers or {})}
        more: dict[str, Any] = {"params": dict(request.query)} if request.query else {}
        sent = time.monotonic()
        reply: Any = self.client.request(request.method, url, name=name, json=request.body, headers=said, **more)
        received = time.monotonic()
        if not reply.status_code:
            return self.answer(0, {}, None, str(reply.error), sent, received, time.time())
        body, text = parse_body(reply.content or b"")
        return self.answer(reply.status_code, reply.headers or {}, body, text, sent, received, time.time())

    def note(self, name: str, due: float, answer: Answer, outcome: str) -> None:
        """Counts an answer, with its latency from when it was due."""
        zero = self.began
        self.ledger.sample(name, due - zero, answer.sent - zero, answer.received - zero, outcome)

    def record(
        self, client: str, what: str, key: str, argument: Any, outcome: Outcome, value: Any, span: tuple[float, float]
    ) -> None:
        """Puts an operation into the history, on the master's clock; where that is in doubt the interval is wider."""
        first, last = (at - self.began for at in span)
        ended = float("inf") if outcome is Outcome.UNKNOWN else last + self._doubt
        self.ledger.operation(Operation(client, what, key, argument, outcome, value, first - self._doubt, ended))

    def _send_parts(self) -> None:
        while True:
            gevent.sleep(_PART_EVERY)
            self._send()

    def _send(self, *, last: bool = False) -> None:
        self.environment.runner.send_message("part", self.ledger.part(last=last))

    def _synchronise(self) -> None:
        """Learns by how much the master's clock is ahead of ours, and how sure that is: half of the quickest answer."""
        if STAGE.clock.get("boot") == boot():
            return
        best = float("inf")
        for _ in range(_CLOCK_TRIES):
            asked = time.monotonic()
            STAGE.told_time.clear()
            self.environment.runner.send_message("clock", {"asked": asked})
            STAGE.told_time.wait(self.plan.patience)
            took = time.monotonic() - asked
            if took < best and "master" in STAGE.clock:
                best, self._shift = took, float(STAGE.clock["master"]) - (asked + took / 2)
        self._doubt = best / 2


class Behaviour:
    """What the arrivals of one campaign do."""

    def __init__(self, user: OpenUser) -> None:
        self.user = user
        self.plan = user.plan

    def arrange(self) -> None:
        """Prepares what the campaign needs; not measured. Raises Refused if that can't be done."""

    def arrive(self, number: int, due: float) -> None:
        """Does what arrival `number` of the whole campaign does, which was due at `due`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Looks once more, after everything has ended; not measured."""


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keeps the garbage collector from stopping all greenlets at once; what is left behind has few cycles."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    yield


def _on_plan(environment: Environment, msg: Any, **_more: Any) -> None:
    del environment
    STAGE.plan = Plan.read(msg.data["plan"])
    STAGE.worker, STAGE.workers = int(msg.data["worker"]), int(msg.data["workers"])
    STAGE.clock["boot"] = msg.data["boot"]
    STAGE.planned.set()


def _on_time(environment: Environment, msg: Any, **_more: Any) -> None:
    del environment
    STAGE.clock.update(msg.data)
    STAGE.told_time.set()


def _on_go(environment: Environment, msg: Any, **_more: Any) -> None:
    del environment
    STAGE.went = msg.data
    STAGE.going.set()


def take_part(plan_of_this_run: Callable[[Environment], Plan]) -> None:
    """Called by a locustfile: connects this process to the others, as Locust has told it what it is."""

    def listen(environment: Environment, **_more: Any) -> None:
        runner = environment.runner
        assert runner is not None
        if not isinstance(runner, MasterRunner):
            for name, handler in (("plan", _on_plan), ("time", _on_time), ("go", _on_go)):
                runner.register_message(name, handler)
        if not isinstance(runner, WorkerRunner):
            director = Director(environment, plan_of_this_run(environment))
            director.listen()
            events.test_start.add_listener(lambda **_said: director.begin())  # type: ignore[no-untyped-call]  # Locust's

    events.init.add_listener(listen)  # type: ignore[no-untyped-call]  # Locust's
