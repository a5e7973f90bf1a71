"""One of several runners: does what its parent orders for one spec, and tells the parent what happens.

    python -m holdfast.cli.runner order <pid of the parent> <events-fd> <tokens-fd>
    python -m holdfast.cli.runner stress <pid of the parent>

`holdfast.run.runners` is the other side and says who owns what. The order is one line on standard input; events go to
the pipe, questions for places to the socket. What is for people (why the target does not start) goes to standard error,
the exit code is that of the spec, as if it had been run alone. `stress` only keeps a core busy until it is killed. Both
die with the parent.
"""

import os
import signal
import socket
import sys
from typing import NoReturn, TextIO

from holdfast.fixtures.guardian import PR_SET_PDEATHSIG, prctl
from holdfast.run.events import CheckWaiting, Event
from holdfast.run.runners import Order
from holdfast.run.stream import line_of
from holdfast.run.tokens import SharedTokens


class Wire:
    """A reporter that writes each event into the pipe to the parent; what checks wait for only if it is shown."""

    def __init__(self, pipe: TextIO, *, waiting: bool) -> None:
        self._pipe = pipe
        self._waiting = waiting

    def handle(self, event: Event) -> None:
        if self._waiting or not isinstance(event, CheckWaiting):
            self._pipe.write(line_of(event))
            self._pipe.flush()


def main() -> int:
    parent, *connections = map(int, sys.argv[2:])
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return 2  # it was killed before it could be watched
    if sys.argv[1] == "stress":
        return _stress()
    events, connection = connections
    for ours in connections:
        os.set_inheritable(ours, False)
    order = Order.from_line(sys.stdin.readline())
    sys.argv[1:] = order.argv  # the report names the command that the user gave
    pipe = os.fdopen(events, "w", encoding="utf-8", errors="backslashreplace")
    wire = Wire(pipe, waiting=order.waiting)
    return _work(order, wire, SharedTokens(socket.socket(fileno=connection)))


def _stress() -> int:
    from holdfast.fixtures import stress

    for number in (signal.SIGINT, signal.SIGHUP):  # from the terminal; the parent ends us when it has finished
        signal.signal(number, signal.SIG_IGN)
    stress.main([])
    return 0


def _work(order: Order, wire: Wire, tokens: SharedTokens) -> int:
    if order.work == "mutants":
        from holdfast.cli.mutants import judge_mutants

        return judge_mutants(order.key, order.options, wire, tokens).exit
    from holdfast.cli.run import run_suite

    ran = run_suite(order.key, order.options, order.names, wire, tokens)
    if ran.problem:
        print(ran.problem, file=sys.stderr)
    return ran.code


def _main() -> NoReturn:
    from holdfast.cli.main import MISTAKES, sentence

    try:
        code = main()
    except MISTAKES as error:
        print(sentence(error), file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 2
    sys.exit(code)


if __name__ == "__main__":
    _main()
