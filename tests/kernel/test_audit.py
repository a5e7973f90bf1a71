"""Waits in run queues, counted for every thread of real processes."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.check.audit import RunQueues

# Threads that work outside of the interpreter's lock, so that they compete for processors with each other.
CROWD = """
import hashlib, sys, threading, time
data = b"x" * (1 << 22)
def work():
    end = time.monotonic() + float(sys.argv[2])
    while time.monotonic() < end:
        hashlib.sha256(data).digest()
threads = [threading.Thread(target=work) for _ in range(int(sys.argv[1]))]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done", flush=True)
sys.stdin.readline()
"""


@contextmanager
def crowd(threads: int, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """A process whose threads work on one processor for a while, and which then waits."""
    core = {min(os.sched_getaffinity(0))}
    with subprocess.Popen(
        [sys.executable, "-c", CROWD, str(threads), str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, core),  # noqa: PLW1509 - this process has no other thread
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def main_thread_alone(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def test_waits_of_all_threads_count_not_only_those_of_the_first() -> None:
    queues = RunQueues()
    with crowd(6, 1.0) as process:
        time.sleep(0.7)
        all_of_them = queues.wait_of([process.pid])
        assert all_of_them > 1.0, "six threads on one processor: five wait at any time"
        assert main_thread_alone(process.pid) < 0.5 * all_of_them


def test_what_ended_threads_and_processes_have_waited_stays_counted() -> None:
    queues = RunQueues()
    with crowd(6, 0.6) as process:
        time.sleep(0.4)
        before = queues.wait_of([process.pid])
        assert process.stdout
        assert process.stdout.readline() == "done\n"
        after = queues.wait_of([process.pid])
        assert after >= before > 0, "the threads have ended"
        assert len(list(Path(f"/proc/{process.pid}/task").iterdir())) < 7
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert queues.wait_of([process.pid]) >= after
        assert queues.wait_of([]) >= after


def test_threads_that_come_later_are_found() -> None:
    queues = RunQueues()
    with crowd(8, 0.8) as process:
        assert queues.wait_of([process.pid]) < 0.5, "asked before its threads began"
        time.sleep(0.6)
        assert queues.wait_of([process.pid]) > 1.0


def test_a_process_that_is_not_there_has_waited_for_nothing() -> None:
    assert RunQueues().wait_of([0x3FFFFF]) == 0.0


def test_reading_is_cheap_enough_for_every_judged_wait() -> None:
    """Four nodes of twelve threads take half a millisecond here; the bound leaves room for slower machines."""
    queues, over = RunQueues(), threading.Event()
    threads = [threading.Thread(target=over.wait) for _ in range(11)]
    for thread in threads:
        thread.start()
    try:
        best = min(_took(queues, [os.getpid()] * 4) for _ in range(20))
    finally:
        over.set()
    assert best < 0.005


def _took(queues: RunQueues, pids: list[int]) -> float:
    began = time.perf_counter()
    queues.wait_of(pids)
    return time.perf_counter() - began
