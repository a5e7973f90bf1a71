"""A second target beside the one under test: the same check runs on it too, and lends its worlds to the walks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from holdfast.check.context import Context
from holdfast.check.walk.against import Beside


@asynccontextmanager
async def lending(context: Context, second: Context | None, params: Mapping[str, Any]) -> AsyncIterator[None]:
    """Runs the check on the second target as long as the block lasts, and closes what it opened there."""
    if second is None:
        yield
        return
    context.beside = second.lends = beside = Beside(second.target.name)
    task = asyncio.ensure_future(_lend(second, params))
    try:
        yield
    finally:
        beside.done()
        await asyncio.wait({task})
        await second.stack.aclose()


async def _lend(second: Context, params: Mapping[str, Any]) -> None:
    second.acts.begin()
    try:
        await second.perform_check(params)
    except Exception as error:  # noqa: BLE001 - whatever keeps it from lending is told where its worlds are wanted
        if second.lends is not None:
            second.lends.failed(error)
