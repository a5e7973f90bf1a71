"""Reads the clock of a node from outside, as an interval: how far it is ahead of the harness's, at least and at most.

A node that serves HTTP dates its answers; any answer will do, a refusal too. A node that does not is read by its log:
of the lines that it has written since a known moment the last dated one was written between then and now, so its clock
was off by something between (date minus now) and (date minus then). Both are as good as their interval is short, and
the caller compares the interval with what it asked for.
"""

import asyncio
import contextlib
import datetime as dt
import email.utils
import json
import re
import ssl
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from holdfast.target.deployment import Node

ANSWER = 5.0
_DATED = ("ts", "time", "timestamp", "@timestamp", "at", "date")
_LEADING_DATE = re.compile(r"\W*(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)")
# From here on a number of seconds, milliseconds, microseconds or nanoseconds since 1970.
_EPOCHS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (1e8, 1.0))


@dataclass(frozen=True)
class Reading:
    """By how many seconds the node's clock is ahead of the harness's, and what showed it."""

    least: float
    most: float
    shown_by: str

    def fits(self, wanted: float, tolerance: float) -> bool:
        return self.least - tolerance <= wanted <= self.most + tolerance


@dataclass(frozen=True)
class Since:
    """A moment before the node's present process started, and how many lines its log had then."""

    at: float
    lines: int

    @classmethod
    def now(cls, node: Node) -> "Since":
        return cls(time.time(), len(node.log_lines()))


async def clock_of(node: Node, since: Since) -> Reading | None:
    """Returns what its answers or its log show; None if neither is dated."""
    for kind in ("http", "https"):
        if kind in node.urls and (off := await _ahead_by_answer(node.urls[kind])) is not None:
            return Reading(off, off, "the date of its answers")
    return _ahead_by_log(node.log_lines()[since.lines :], since.at)


async def _ahead_by_answer(url: str) -> float | None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(ANSWER):
            return _ahead(await _head(url))
    return None


async def _head(url: str) -> str:
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, ssl=_any_server(parts.scheme))
    try:
        writer.write(b"GET /health HTTP/1.1\r\nHost: canary\r\nConnection: close\r\n\r\n")
        return (await reader.read()).partition(b"\r\n\r\n")[0].decode("latin-1")
    finally:
        writer.close()


def _any_server(scheme: str) -> ssl.SSLContext | None:
    if scheme != "https":
        return None
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its clock is asked for, not who it is
    return context


def _ahead(head: str) -> float | None:
    for line in head.splitlines():
        name, _, value = line.partition(":")
        if name.lower() == "date":
            return email.utils.parsedate_to_datetime(value.strip()).timestamp() - time.time()
    return None


def _ahead_by_log(lines: Sequence[str], since: float) -> Reading | None:
    for line in reversed(lines):
        if (written := date_of(line)) is not None:
            return Reading(written - time.time(), written - since, "the dates in its log")
    return None


def date_of(line: str) -> float | None:
    """Returns when a log line says that it was written, in seconds since 1970; None if it does not say."""
    if line.startswith("{"):
        with contextlib.suppress(ValueError):
            return _dated(json.loads(line))
    found = _LEADING_DATE.match(line)
    return _instant(found[1]) if found else None


def _dated(record: Mapping[str, Any]) -> float | None:
    dates = (_instant(record[name]) for name in _DATED if name in record)
    return next((date for date in dates if date is not None), None)


def _instant(value: Any) -> float | None:
    if isinstance(value, int | float):
        return next((value / unit for least, unit in _EPOCHS if value >= least), None)
    with contextlib.suppress(ValueError, TypeError):
        read = dt.datetime.fromisoformat(str(value).replace(",", "."))
        return (read if read.tzinfo else read.replace(tzinfo=dt.UTC)).timestamp()
    return None
