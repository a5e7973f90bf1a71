import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest

from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import Finding, Inconclusive


async def _double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def _raise(error: BaseException) -> None:
    raise error


def _run(work: Callable[[], Awaitable[object]]) -> object:
    async def main() -> object:
        return await work()

    return asyncio.run(main())


def test_sync_code_calls_back_onto_the_loop() -> None:
    def work(call: Call) -> int:
        assert threading.current_thread() is not threading.main_thread()
        return call(_double(call(_double(1))))

    assert _run(lambda: in_thread(work, deadline=1)) == 4


def test_a_finding_comes_back_to_the_sync_code() -> None:
    def work(call: Call) -> str:
        try:
            call(_raise(Finding(["a"], "b")))
        except AssertionError as finding:
            return str(finding)
        return "nothing"

    assert _run(lambda: in_thread(work, deadline=1)) == "expected a; seen b"


def test_anything_else_ends_the_sync_code_whatever_it_catches() -> None:
    tries: list[int] = []

    def work(call: Call) -> None:
        for number in range(3):
            with contextlib.suppress(Exception):
                tries.append(number)
                call(_raise(Inconclusive("too slow")))

    with pytest.raises(Inconclusive, match="too slow"):
        _run(lambda: in_thread(work, deadline=1))
    assert tries == [0]


def test_what_ended_the_sync_code_counts_not_what_it_made_of_it() -> None:
    def work(call: Call) -> None:
        try:
            call(_raise(Inconclusive("too slow")))
        finally:
            raise ValueError("made of it")

    with pytest.raises(Inconclusive, match="too slow"):
        _run(lambda: in_thread(work, deadline=1))


def test_an_error_of_the_sync_code_itself_comes_out() -> None:
    def work(_: Call) -> None:
        raise KeyError("own")

    with pytest.raises(KeyError, match="own"):
        _run(lambda: in_thread(work, deadline=1))


def test_a_call_has_a_deadline() -> None:
    with pytest.raises(TimeoutError, match=r"longer than 0\.05 s"):
        _run(lambda: in_thread(lambda call: call(asyncio.sleep(5)), deadline=0.05))


def test_a_cancelled_check_ends_its_thread() -> None:
    threads: list[threading.Thread] = []

    def work(call: Call, wait: Callable[[], Coroutine[Any, Any, None]]) -> None:
        threads.append(threading.current_thread())
        while True:
            call(wait())

    async def main() -> None:
        running = asyncio.Event()

        async def wait() -> None:
            running.set()
            await asyncio.sleep(5)

        task = asyncio.ensure_future(in_thread(lambda call: work(call, wait), deadline=10))
        await running.wait()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await asyncio.to_thread(threads[0].join, 5)

    asyncio.run(main())
    assert not threads[0].is_alive()


def test_a_fault_of_the_interpreter_itself_decides_nothing() -> None:
    def work(_call: Call) -> None:
        stumble = SystemError("AST constructor recursion depth mismatch (before=171, after=32)")
        raise ExceptionGroup("inconsistent results", [stumble])

    with pytest.raises(Inconclusive, match="a fault of the interpreter"):
        _run(lambda: in_thread(work, deadline=1))
