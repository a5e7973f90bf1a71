"""What workers and master tell each other, and what the master does with it. All of it goes through Locust's messages.

So one process, `--processes` and many machines are the same to us. In the order in which they come:

    plan    to each worker   the whole plan, and which share of the arrivals is its own
    clock   both ways        the master's clock, unless both run on one machine, where the clock is the same
    ready   to the master    the worker has arranged what the campaign needs
    go      to all           when the campaign begins, on the master's clock
    part    to the master    what happened since the last part (see `ledger`); the last one ends the worker's work
    enough  to all           no further arrivals: what the campaign is to prove is proven
    refused to the master    why the campaign can't begin

The master appends parts to a file as they come. It quits when all workers have sent their last one, or one is gone.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import gevent
from gevent.event import Event
from locust import events
from locust.env import Environment
from locust.runners import MasterRunner, WorkerRunner

from holdfast.load.plan import Plan

_WATCH_EVERY = 1.0
_LEAD = 0.3
_BOOT = Path("/proc/sys/kernel/random/boot_id")


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
        self.enough = False
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
        """Ends the campaign when a worker is gone: what it knew is lost, and the others need not go on.

        Passes on that it is enough, which whoever puts the faults says by a file.
        """
        told = False
        while not self._over:
            gevent.sleep(_WATCH_EVERY)
            if isinstance(self._runner, MasterRunner) and not self._over and self._gone():
                self.end()
            if not told and self._plan.enough.exists():
                told = True
                self._runner.send_message("enough", {})

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


def _on_enough(environment: Environment, msg: Any, **_more: Any) -> None:
    del environment, msg
    STAGE.enough = True


_HEARD = {"plan": _on_plan, "time": _on_time, "go": _on_go, "enough": _on_enough}


def take_part(plan_of_this_run: Callable[[Environment], Plan]) -> None:
    """Called by a locustfile: connects this process to the others, as Locust has told it what it is."""

    def listen(environment: Environment, **_more: Any) -> None:
        runner = environment.runner
        assert runner is not None
        if not isinstance(runner, MasterRunner):
            for name, handler in _HEARD.items():
                runner.register_message(name, handler)
        if not isinstance(runner, WorkerRunner):
            director = Director(environment, plan_of_this_run(environment))
            director.listen()
            events.test_start.add_listener(lambda **_said: director.begin())  # type: ignore[no-untyped-call]  # Locust's

    events.init.add_listener(listen)  # type: ignore[no-untyped-call]  # Locust's
