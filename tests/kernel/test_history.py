import asyncio
import json
import math
import threading
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.check.history import History, HistoryError, Operation, Outcome, Recorder


def ticking() -> Recorder:
    """A clock that advances by one second each time it is read."""
    ticks = count()
    return Recorder(lambda: float(next(ticks)))


def test_each_way_to_end_is_taken_down_with_its_interval() -> None:
    recorder = ticking()
    first = recorder.invoke("c1", "acquire", "lock")
    second = recorder.invoke("c2", "acquire", "lock")
    first.ok(7)
    second.failed("taken")
    recorder.invoke("c3", "acquire", "lock").unknown("timeout")
    assert list(recorder.history()) == [
        Operation("c1", "acquire", "lock", None, Outcome.OK, 7, 0.0, 2.0),
        Operation("c2", "acquire", "lock", None, Outcome.FAILED, "taken", 1.0, 3.0),
        Operation("c3", "acquire", "lock", None, Outcome.UNKNOWN, "timeout", 4.0, math.inf),
    ]


def test_what_is_still_under_way_is_unknown_and_may_end_later() -> None:
    recorder = ticking()
    call = recorder.invoke("c1", "write", argument=3)
    [pending] = recorder.history()
    assert (pending.outcome, pending.completed) == (Outcome.UNKNOWN, math.inf)
    call.ok()
    [done] = recorder.history()
    assert (done.outcome, done.completed) == (Outcome.OK, 1.0)


def test_an_operation_ends_once() -> None:
    call = ticking().invoke("c1", "write", argument=3)
    call.ok()
    with pytest.raises(HistoryError, match="has already ended, so it can't end as unknown too"):
        call.unknown()


def test_an_exception_and_silence_leave_the_outcome_unknown() -> None:
    recorder = ticking()
    with pytest.raises(ConnectionResetError), recorder.operation("c1", "write"):
        raise ConnectionResetError
    with recorder.operation("c1", "write"):
        pass
    with recorder.operation("c1", "write") as call:
        call.ok(1)
    outcomes = [(operation.outcome, operation.value) for operation in recorder.history()]
    assert outcomes == [(Outcome.UNKNOWN, "ConnectionResetError"), (Outcome.UNKNOWN, None), (Outcome.OK, 1)]


def test_a_cancelled_task_leaves_the_outcome_unknown() -> None:
    recorder = ticking()

    async def wait() -> None:
        with recorder.operation("c1", "write"):
            await asyncio.Event().wait()

    async def scenario() -> None:
        task = asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(scenario())
    assert [operation.value for operation in recorder.history()] == ["CancelledError"]


def test_threads_lose_nothing_and_one_of_two_endings_wins() -> None:
    recorder, each = Recorder(), 500
    shared = [recorder.invoke("shared", "write") for _ in range(each)]
    refused: list[str] = []

    def work(name: str) -> None:
        for call in shared:
            recorder.invoke(name, "read").ok()
            try:
                call.ok(name)
            except HistoryError:
                refused.append(name)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history = recorder.history()
    assert len(history) == 5 * each
    assert all(operation.ok and operation.invoked <= operation.completed for operation in history)
    assert len(refused) == 3 * each


values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
names = st.text(max_size=5)
times = st.floats(0, 1e9)


@st.composite
def operations(draw: st.DrawFn) -> Operation:
    outcome, invoked = draw(st.sampled_from(Outcome)), draw(times)
    completed = math.inf if outcome is Outcome.UNKNOWN else invoked + draw(times)
    return Operation(draw(names), draw(names), draw(names), draw(values), outcome, draw(values), invoked, completed)


@given(st.lists(operations(), max_size=8))
def test_what_is_stored_is_what_is_read(made: list[Operation]) -> None:
    history = History.of(made)
    lines = list(history.lines())
    read = History.parse(f"{line}\n" for line in lines)
    assert read == history
    assert [type(operation.value) for operation in read] == [type(operation.value) for operation in history]
    assert all(json.loads(line) and "\n" not in line for line in lines)


HEADER = next(History(()).lines())
LINE = list(History.of([Operation("c", "w", "", 1, Outcome.OK, None, 1.0, 2.0)]).lines())[1]


@pytest.mark.parametrize(
    ("lines", "complaint"),
    [
        ([], "h.jsonl, line 1: not JSON"),
        (["[]"], "h.jsonl, line 1: not a JSON object"),
        (['{"event": "start"}'], "h.jsonl, line 1: not a history"),
        ([HEADER.replace("1", "2")], "unknown version 2"),
        ([HEADER, LINE, LINE[:-9]], "h.jsonl, line 3: not JSON"),
        ([HEADER, LINE.replace('"w"', '"w", "extra": 1')], "h.jsonl, line 2: extra missing or unknown"),
        ([HEADER, LINE.replace('"ok"', '"fine"')], "'fine' is not a valid Outcome"),
        ([HEADER, LINE.replace("2.0", "null")], "contradict each other"),
        ([HEADER, LINE.replace("2.0", "0.5")], "contradict each other"),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(lines: list[str], complaint: str) -> None:
    with pytest.raises(HistoryError) as raised:
        History.parse(lines, "h.jsonl")
    assert complaint in str(raised.value)


@pytest.mark.parametrize(("value", "complaint"), [((1, 2), "its value is a tuple"), (math.nan, "no such number")])
def test_what_json_would_change_is_not_stored(value: object, complaint: str) -> None:
    broken = Operation("c", "w", "", None, Outcome.OK, value, 1.0, 2.0)  # type: ignore[arg-type]  # the mistake itself
    with pytest.raises(HistoryError, match=complaint):
        list(History.of([broken]).lines())


def test_an_operation_reads_as_a_line() -> None:
    done = Operation("c1", "enqueue", "q", "x", Outcome.OK, 3, 10.25, 10.5)
    lost = Operation("c1", "acquire", "", None, Outcome.UNKNOWN, None, 11.0, math.inf)
    assert done.describe(10.0) == "[+0.250, +0.500] c1: enqueue x on q → ok 3"
    assert lost.describe(10.0) == "[+1.000, …] c1: acquire → unknown outcome"
