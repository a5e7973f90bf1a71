"""Places shared by real processes, some of which are killed while they hold them."""

import asyncio
import contextlib
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from holdfast.run.places import Places
from holdfast.run.tokens import Broker, OwnTokens, SharedTokens, Tokens
from tests.fixtures.waiting import DEADLINE

# A runner: takes places of the lane for work, says so, keeps them until it is told to go on, and ends.
# Whoever started the tests may ignore SIGINT, as a shell does for what it puts into the background.
RUNNER = """
import asyncio, signal, socket, sys
from holdfast.run.tokens import SharedTokens

signal.signal(signal.SIGINT, signal.default_int_handler)

async def main():
    tokens = SharedTokens(socket.socket(fileno=int(sys.argv[1])))
    tokens.attach()
    print("asks", flush=True)
    async with tokens.place("work", int(sys.argv[2])):
        print("has", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    print("gave", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)

asyncio.run(main())
"""


class Serving:
    """A broker in a thread, as the parent of runners would serve it."""

    def __init__(self, **limits: int) -> None:
        self.broker = Broker(Places(limits))  # type: ignore[arg-type]  # the names of lanes
        self._selector = selectors.DefaultSelector()
        self._wake, self._waker = socket.socketpair()
        self._selector.register(self._wake, selectors.EVENT_READ)
        self._new: list[socket.socket] = []
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def connection(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        self._new.append(ours)
        self._waker.send(b"n")
        return theirs

    def close(self) -> None:
        self._waker.send(b"e")
        self._thread.join(5)
        self._selector.close()
        for each in (self._wake, self._waker):
            each.close()

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                if key.fileobj is self._wake:
                    if self._wake.recv(1) == b"e":
                        self.broker.close()
                        return
                    ours = self._new.pop(0)
                    self.broker.join(ours)
                    self._selector.register(ours.fileno(), selectors.EVENT_READ)
                else:
                    self._selector.unregister(key.fd)
                    if self.broker.read(key.fd):
                        self._selector.register(key.fd, selectors.EVENT_READ)


@contextlib.contextmanager
def serving(**limits: int) -> Iterator[Serving]:
    served = Serving(**limits)
    try:
        yield served
    finally:
        served.close()


class Runner:
    def __init__(self, served: Serving, weight: int) -> None:
        with served.connection() as theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-c", RUNNER, str(theirs.fileno()), str(weight)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                pass_fds=[theirs.fileno()],
            )
        assert self.process.stdout
        self._stdout, self._unread = self.process.stdout.fileno(), b""
        assert self.hears() == "asks"

    def hears(self) -> str:
        while b"\n" not in self._unread:
            assert not self.silent(DEADLINE), "the runner said nothing"
            said = os.read(self._stdout, 4096)
            assert said, "the runner has ended"
            self._unread += said
        line, _, self._unread = self._unread.partition(b"\n")
        return line.decode()

    def silent(self, seconds: float = 0.3) -> bool:
        with selectors.DefaultSelector() as selector:
            selector.register(self._stdout, selectors.EVENT_READ)
            return not self._unread and not selector.select(seconds)

    def go_on(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving(work=4) as served:
        yield served


@contextlib.contextmanager
def runners(served: Serving, *weights: int) -> Iterator[list[Runner]]:
    started = list[Runner]()
    try:
        for weight in weights:
            started.append(Runner(served, weight))
        yield started
    finally:
        for runner in started:
            runner.end()


def test_two_processes_share_what_is_there_and_the_third_waits(served: Serving) -> None:
    with runners(served, 2, 2) as (first, second):
        assert (first.hears(), second.hears()) == ("has", "has")
        with runners(served, 2) as (third,):
            assert third.silent()
            first.go_on()
            assert (first.hears(), third.hears()) == ("gave", "has")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_places_of_a_runner_that_is_killed_come_back_by_themselves(served: Serving, how: signal.Signals) -> None:
    with runners(served, 4, 2, 2) as (heavy, *others):
        assert heavy.hears() == "has"
        assert all(other.silent(0.1) for other in others)
        heavy.process.send_signal(how)
        assert [other.hears() for other in others] == ["has", "has"]


def test_a_runner_that_is_killed_while_it_waits_no_longer_holds_up_those_behind_it(served: Serving) -> None:
    with runners(served, 2, 4, 2) as (first, heavy, last):
        assert first.hears() == "has"
        assert heavy.silent(0.1)
        assert last.silent(0.1)
        heavy.process.kill()
        assert last.hears() == "has"


def test_many_runners_that_are_killed_at_any_time_leave_every_place_free(served: Serving) -> None:
    for round_ in range(3):
        with runners(served, *(1 + number % 4 for number in range(5))) as some:
            for runner in some[round_:]:
                runner.process.kill()
    with runners(served, 4) as (last,):
        assert last.hears() == "has"


async def _crowd(tokens: Tokens, weights: list[int], limit: int) -> None:
    """Ask for places from many tasks, cancel every third, and look that no more are taken than there are."""
    taken = 0

    async def work(weight: int) -> None:
        nonlocal taken
        async with tokens.place("work", weight):
            taken += weight
            try:
                assert taken <= limit
                await asyncio.sleep(0.001)
            finally:
                taken -= weight

    tasks = [asyncio.ensure_future(work(weight)) for weight in weights]
    await asyncio.sleep(0.002)
    for task in tasks[::3]:
        task.cancel()
    done = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 10)
    assert not [each for each in done if isinstance(each, Exception)]
    async with asyncio.timeout(5), tokens.place("work", limit):
        pass


WEIGHTS = [1, 2, 4, 2, 1, 1, 3, 2] * 6


def test_one_runner_alone_keeps_the_same_books() -> None:
    async def main() -> None:
        await _crowd(OwnTokens(Places({"work": 4})), WEIGHTS, 4)

    asyncio.run(main())


def test_cancelled_questions_are_withdrawn_over_the_socket_too(served: Serving) -> None:
    async def main() -> None:
        with served.connection() as theirs:
            tokens = SharedTokens(theirs)
            tokens.attach()
            await _crowd(tokens, WEIGHTS, 4)
            asyncio.get_running_loop().remove_reader(theirs)

    asyncio.run(main())


def test_a_runner_whose_broker_is_gone_waits_for_nobody() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            tokens = SharedTokens(theirs)
            tokens.attach()

            async def work() -> None:
                async with tokens.place("work", 4):
                    pass

            waiting = asyncio.ensure_future(work())
            await asyncio.sleep(0.01)
            ours.close()
            await asyncio.wait_for(waiting, 5)
            await asyncio.wait_for(work(), 5)

    asyncio.run(main())
