"""Several specs at the same time: one runner process for each, dealt over the cores by the process that was called.

Who owns what. The *parent*, which the user called, owns the order of specs, the books of the shared places
(`holdfast.run.tokens.Broker`) and the display. Each *runner* (`holdfast.cli.runner`) does for one spec what a run of
one spec does: it has its own guardian, loop, deployments, stream and reports. It shares with the others nothing but
places on the machine. Between the two there are three connections, made before the runner starts:

- its standard input: one line of JSON, the order;
- a pipe: the events of its stream, one a line, for the display;
- a socket: questions for places, and their answers.

The longest spec starts first, the next one when a runner ends. A runner has ended when its pipe has: only the runner
holds the writing end, so the kernel closes it, however the runner ends. Then its places are free again, its exit code
is read, and its spec is over; the others go on. What it had found is in its `events.jsonl`, from which the parent makes
the reports that the runner did not come to write.

Ends. Each runner is in a session of its own, so that Ctrl-C reaches the parent alone. The parent passes the signal on,
starts no more runners, and waits: each runner tidies up, reports and ends as it would alone. If the parent is killed,
the kernel kills the runners (PR_SET_PDEATHSIG), and their guardians end everything below them.
"""

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from holdfast.run.events import Event, decode
from holdfast.run.options import RunOptions
from holdfast.run.signals import Signals
from holdfast.run.tokens import Broker

_CHUNK = 1 << 20
_LAST_WORDS = 10.0
Tell = Callable[[str, Event], None]


@dataclass(frozen=True)
class Order:
    """What one runner is to do. `names` are the scenarios that chaos was asked for; `waiting` sends progress too."""

    work: str
    key: str
    options: RunOptions
    names: tuple[str, ...] = ()
    waiting: bool = False
    argv: tuple[str, ...] = ()

    def to_line(self) -> str:
        return json.dumps({**vars(self), "options": self.options.to_json()})

    @classmethod
    def from_line(cls, line: str) -> "Order":
        said: dict[str, Any] = json.loads(line)
        options = RunOptions.from_json(said.pop("options"))
        return cls(**{**said, "options": options, "names": tuple(said["names"]), "argv": tuple(said["argv"])})


@dataclass(frozen=True)
class Ending:
    """How a runner ended; `words` are what it wrote for people: why it could not run, or a traceback."""

    returncode: int
    words: str = ""

    @property
    def killed(self) -> bool:
        return self.returncode < 0


@dataclass
class _Runner:
    key: str
    process: subprocess.Popen[bytes]
    events: int
    tokens: int
    errors: IO[bytes]
    unread: bytes = b""


@dataclass
class Runners:
    """Runs the orders, `jobs` at a time, in the order given; `tell` is called with each event of each spec.

    Meanwhile `stress` processes keep as many cores busy, here and not in the runners, so that their number holds.
    """

    orders: Sequence[Order]
    jobs: int
    tell: Tell
    stress: int = 0
    endings: dict[str, Ending] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.signals = Signals()
        self._left = list(self.orders)
        self._running: dict[int, _Runner] = {}
        self._broker = Broker()
        self._selector = selectors.DefaultSelector()
        self._hogs: list[subprocess.Popen[bytes]] = []

    def run(self) -> Mapping[str, Ending]:
        """Return how each runner ended, by key, when all have; a signal leaves out those that had not begun."""
        self.signals.take()
        self.signals.hand_to(self._pass_on)
        try:
            self._hogs = [
                subprocess.Popen(_python("stress", os.getpid()), env=_environment()) for _ in range(self.stress)
            ]
            while self._next() or self._running:
                for key, _ in self._selector.select():
                    key.data(key.fd)
        finally:
            self._kill_the_rest()
            self._broker.close()
            self._selector.close()
            self.signals.give_back()
        return self.endings

    def _next(self) -> bool:
        """Start runners while there are orders and cores for them."""
        while self._left and len(self._running) < self.jobs and not self.signals.name:
            self._start(self._left.pop(0))
        return bool(self._left) and not self.signals.name

    def _start(self, order: Order) -> None:
        reading, writing = os.pipe()
        ours, theirs = socket.socketpair()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the runner
        with theirs:
            process = subprocess.Popen(
                _python("order", os.getpid(), writing, theirs.fileno()),
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=_environment(),
                pass_fds=[writing, theirs.fileno()],
                start_new_session=True,
            )
        os.close(writing)
        self._broker.join(ours)
        self._running[reading] = _Runner(order.key, process, reading, ours.fileno(), errors)
        self._selector.register(reading, selectors.EVENT_READ, self._read_events)
        self._selector.register(ours.fileno(), selectors.EVENT_READ, self._read_tokens)
        if process.stdin:
            with contextlib.suppress(BrokenPipeError), process.stdin:  # it has ended; so has its pipe
                process.stdin.write(order.to_line().encode() + b"\n")
        if self.signals.name:  # it came while the runner was not on the list yet
            self._pass_on()

    def _pass_on(self) -> None:
        number = signal.Signals[self.signals.name or "SIGTERM"]
        for runner in self._running.values():
            if runner.process.returncode is None:
                runner.process.send_signal(number)

    def _read_tokens(self, connection: int) -> None:
        if connection not in self._selector.get_map():  # its runner's last event was read a moment before
            return
        # Unregistered first: the broker closes the connection, and its number may be used again.
        self._selector.unregister(connection)
        if self._broker.read(connection):
            self._selector.register(connection, selectors.EVENT_READ, self._read_tokens)

    def _read_events(self, pipe: int) -> None:
        runner = self._running[pipe]
        data = os.read(pipe, _CHUNK)
        if not data:
            self._ended(runner)
            return
        *lines, runner.unread = (runner.unread + data).split(b"\n")
        for line in lines:
            if event := decode(json.loads(line)):
                self.tell(runner.key, event)

    def _ended(self, runner: _Runner) -> None:
        self._selector.unregister(runner.events)
        os.close(runner.events)
        if runner.tokens in self._selector.get_map():
            self._selector.unregister(runner.tokens)
        self._broker.leave(runner.tokens)
        returncode = runner.process.wait()
        runner.errors.seek(0)
        self.endings[runner.key] = Ending(returncode, runner.errors.read().decode(errors="replace").strip())
        runner.errors.close()
        del self._running[runner.events]

    def _kill_the_rest(self) -> None:
        """Runners are left only when the parent itself fails; their guardians end what they had started."""
        for process in (*self._hogs, *(runner.process for runner in self._running.values())):
            process.kill()
            process.wait(_LAST_WORDS)


def _python(what: str, *numbers: int) -> list[str]:
    return [sys.executable, "-P", "-m", "holdfast.cli.runner", what, *map(str, numbers)]


def _environment() -> dict[str, str]:
    """Ours, with our import path: a runner imports what we can, wherever we found it."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)}
