"""What `holdfast doctor` saw: one line for each thing that it tried, or could not try."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from holdfast.check.plain import in_words

TIMEOUT = 5.0
_MARKS = {True: "ok  ", False: "FAIL", None: "–   "}


@dataclass(frozen=True)
class Seen:
    """`good` is None for what was not tried, or could not be judged; the detail says why."""

    good: bool | None
    what: str
    detail: str

    def line(self) -> str:
        return f"  {_MARKS[self.good]}  {self.what:<34} {self.detail}"


async def tried(what: str, look: Callable[[], Awaitable[str]], limit: float = TIMEOUT) -> Seen:
    """Look, and say what was seen, or how it failed."""
    try:
        async with asyncio.timeout(limit):
            return Seen(True, what, await look())
    except Exception as error:  # noqa: BLE001 - the finding is the answer
        late = f"no answer within {limit:g} s" if isinstance(error, TimeoutError) else in_words(error)
        return Seen(False, what, late)
