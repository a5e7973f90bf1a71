"""Records what many clients did at once: when each operation was asked for, when it was answered, and how it ended.

An operation is the interval [invoked, completed]: whatever effect it had, it had in between. An `unknown` one (no
answer, a broken connection) may take effect at any time from its invocation on, or never, so its interval has no end.
A `failed` one was refused and had no effect. The invariants judge a history by nothing else than these intervals.

Everything rests on the intervals being wide enough. The clock is read before a request leaves and again after its
answer has arrived, so the true moment lies inside. An interval that is too wide can only hide a contradiction; one that
is too narrow would invent one. For the same reason a client may say `failed` only where it is certain that nothing
happened; a refusal that might come after the effect is `unknown`.

A `Recorder` collects `Call`s; each call ends once, by `ok`, `failed` or `unknown`. A `History` is a snapshot of them,
sorted by invocation, in which calls that are still open are `unknown`. It can be written as JSON lines beside the run
and read back as an equal history, so that a finding can be judged again without its target.
"""

import json
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any, NamedTuple

# Values that JSON returns unchanged and that can be keys of a dictionary.
Value = str | int | float | bool | None

_HEADER = {"holdfast": "history", "version": 1}
_FIELDS = ("client", "what", "key", "argument", "outcome", "value", "invoked", "completed")


class HistoryError(ValueError):
    """Raised for a history that can't be stored, read or judged; the text says where and what to do."""


class Outcome(StrEnum):
    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"


_TOOK = {Outcome.OK: "ok", Outcome.FAILED: "refused", Outcome.UNKNOWN: "unknown outcome"}


class Operation(NamedTuple):
    """One operation that has ended or is unknown. A tuple, because a run makes a hundred thousand of them."""

    client: str
    what: str
    key: str
    argument: Value
    outcome: Outcome
    value: Value
    invoked: float
    completed: float

    @property
    def ok(self) -> bool:
        return self.outcome is Outcome.OK

    @property
    def possible(self) -> bool:
        """Whether it had an effect, or may have had one, or may still have one."""
        return self.outcome is not Outcome.FAILED

    @property
    def subject(self) -> Value:
        """Returns what it is about: what the client named, else what the answer named, else None."""
        return self.value if self.argument is None and self.ok else self.argument

    def before(self, other: "Operation") -> bool:
        """Whether it surely ended before the other began; equal stamps leave the order open."""
        return self.completed < other.invoked

    def describe(self, start: float = 0.0) -> str:
        """Returns one line for people, with times in seconds since `start`."""
        named = "" if self.argument is None else f" {self.argument}"
        answer = "" if self.value is None else f" {self.value}"
        end = "…" if math.isinf(self.completed) else f"{self.completed - start:+.3f}"
        place = f" on {self.key}" if self.key else ""
        times = f"[{self.invoked - start:+.3f}, {end}]"
        return f"{times} {self.client}: {self.what}{named}{place} → {_TOOK[self.outcome]}{answer}"


@dataclass(frozen=True)
class History:
    """Operations in the order of their invocation."""

    operations: tuple[Operation, ...]

    @classmethod
    def of(cls, operations: Iterable[Operation]) -> "History":
        return cls(tuple(sorted(operations, key=lambda operation: operation.invoked)))

    def __len__(self) -> int:
        return len(self.operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    @property
    def start(self) -> float:
        return self.operations[0].invoked if self.operations else 0.0

    @cached_property
    def by_key(self) -> dict[str, list[Operation]]:
        """The operations of each key: locks, queues and registers of different names are judged separately."""
        groups: dict[str, list[Operation]] = defaultdict(list)
        for operation in self.operations:
            groups[operation.key].append(operation)
        return dict(groups)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(operation.what for operation in self.operations)

    def lines(self) -> Iterator[str]:
        """Yields JSON lines, a header first, to be stored beside the run; `parse` returns an equal history."""
        yield json.dumps(_HEADER)
        for operation in self.operations:
            yield _line(operation)

    @classmethod
    def parse(cls, lines: Iterable[str], source: str = "history") -> "History":
        """Reads what `lines` wrote. `source` is what errors call it, such as the file's name. Raises HistoryError."""
        numbered = enumerate(lines, 1)
        _read_header(next(numbered, (1, ""))[1], source)
        return cls.of(_operation(text, f"{source}, line {number}") for number, text in numbered if text.strip())


def _line(operation: Operation) -> str:
    record: dict[str, Any] = dict(zip(_FIELDS, operation, strict=True))
    if math.isinf(operation.completed):
        record["completed"] = None
    for name in ("argument", "value"):
        if not isinstance(record[name], Value):
            raise HistoryError(
                f"{operation.describe()}: its {name} is a {type(record[name]).__name__}; record text, a number or None"
            )
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False)
    except ValueError:
        raise HistoryError(f"{operation.describe()}: JSON has no such number; record it as text") from None


def _read_header(text: str, source: str) -> None:
    record = _json(text, f"{source}, line 1")
    if record.get("holdfast") != "history":
        raise HistoryError(f"{source}, line 1: not a history; its first line would be {json.dumps(_HEADER)}")
    if record.get("version") != _HEADER["version"]:
        version = record.get("version")
        raise HistoryError(f"{source}, line 1: unknown version {version!r}; read it with the Holdfast that wrote it")


def _operation(text: str, place: str) -> Operation:
    record = _json(text, place)
    if wrong := record.keys() ^ set(_FIELDS):
        raise HistoryError(
            f"{place}: {', '.join(sorted(wrong))} missing or unknown; each line has the fields {_FIELDS}"
        )
    try:
        outcome, invoked = Outcome(record["outcome"]), float(record["invoked"])
        completed = math.inf if record["completed"] is None else float(record["completed"])
    except (TypeError, ValueError) as error:
        raise HistoryError(f"{place}: {error}; the line was changed or cut, record the run again") from error
    if completed < invoked or (outcome is Outcome.UNKNOWN) != math.isinf(completed):
        raise HistoryError(f"{place}: {outcome} and [{invoked}, {completed}] contradict each other")
    return Operation(**{**record, "outcome": outcome, "invoked": invoked, "completed": completed})


def _json(text: str, place: str) -> dict[str, Any]:
    try:
        record = json.loads(text)
    except ValueError as error:
        raise HistoryError(f"{place}: not JSON ({error}); the file was changed or cut") from error
    if not isinstance(record, dict):
        raise HistoryError(f"{place}: not a JSON object; the file was changed or cut")
    return record


class Call:
    """One operation that was invoked. The client that invoked it says once how it ended."""

    __slots__ = ("_end", "_recorder", "client", "invoked", "key", "subject", "what")

    def __init__(self, recorder: "Recorder", client: str, what: str, key: str, argument: Value, invoked: float) -> None:
        self.client = client
        self.what = what
        self.key = key
        self.subject = argument
        self.invoked = invoked
        self._recorder = recorder
        self._end: tuple[Outcome, Value, float] | None = None

    @property
    def open(self) -> bool:
        return self._end is None

    def ok(self, value: Value = None) -> None:
        self._close(Outcome.OK, value, self._recorder.now())

    def failed(self, reason: Value = None) -> None:
        """Ends it as refused and certainly without effect; where that is not certain, call `unknown`."""
        self._close(Outcome.FAILED, reason, self._recorder.now())

    def unknown(self, reason: Value = None) -> None:
        self._close(Outcome.UNKNOWN, reason, math.inf)

    def operation(self) -> Operation:
        """Returns it as it is now; `unknown` while it is open."""
        # Read once: another thread may complete it between two looks.
        outcome, value, completed = self._end or (Outcome.UNKNOWN, None, math.inf)
        return Operation(self.client, self.what, self.key, self.subject, outcome, value, self.invoked, completed)

    def _close(self, outcome: Outcome, value: Value, completed: float) -> None:
        with self._recorder.lock:
            if self._end is None:
                self._end = (outcome, value, completed)
                return
        raise HistoryError(f"{self.operation().describe()}: it has already ended, so it can't end as {outcome} too")


class Recorder:
    """Records operations, from the loop and from bridge threads alike.

    It keeps one object per operation and nothing else; `history` makes a history of them on request.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self.lock = threading.Lock()
        self._calls: list[Call] = []

    def invoke(self, client: str, what: str, key: str = "", argument: Value = None) -> Call:
        """Begins an operation; call this before the request leaves."""
        call = Call(self, client, what, key, argument, self.now())
        self._calls.append(call)  # atomic, with and without a global interpreter lock
        return call

    @contextmanager
    def operation(self, client: str, what: str, key: str = "", argument: Value = None) -> Iterator[Call]:
        """Begins an operation for the block. An exception, a cancelled task or no answer ends it as unknown."""
        call = self.invoke(client, what, key, argument)
        try:
            yield call
        except BaseException as error:
            if call.open:
                call.unknown(type(error).__name__)
            raise
        if call.open:
            call.unknown()

    def history(self) -> History:
        """Returns all operations so far; those that are still open have an unknown outcome."""
        return History.of(call.operation() for call in list(self._calls))
