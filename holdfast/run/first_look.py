"""Looks once, before the first check, whether what the descriptor gave us is any good: files, then credentials.

A wrong credential fails every row in its own way, and none of them names it. So the suite of a spec may have a module
`preflight` with a function `look`, which asks for drivers by annotation as checks do, tries what it was given with
calls that change nothing, and raises `WronglyGiven` with one sentence. A driver may raise it too when it is made, where
its own part of the descriptor makes no sense. `look` is called only for targets that others started: a target that
Holdfast starts gets its credentials from the same descriptor, and if it refuses them, the rows say so. Anything else
that goes wrong here is left to the checks.
"""

import asyncio
import importlib
import importlib.util
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.finding import WronglyGiven
from holdfast.check.verifies import CheckSpec
from holdfast.spec.catalogue import Catalogue
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target
from holdfast.target.given import wrong_file

_LIMIT = 3.0


async def first_look(target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit) -> str | None:
    """Returns what was given wrongly, as one sentence; None if nothing was."""
    if problem := wrong_file(target, deployment.fill):
        return problem
    look = _look_of(target.spec)
    return None if look is None else await _tried(look, target, catalogue, deployment, audit)


def _look_of(key: str) -> Callable[..., Awaitable[None]] | None:
    name = f"holdfast.conformance.{key}.preflight"
    if importlib.util.find_spec(name) is None:
        return None
    look: Callable[..., Awaitable[None]] = importlib.import_module(name).look
    return look


async def _tried(
    look: Callable[..., Awaitable[None]], target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit
) -> str | None:
    async def no_other() -> Deployment:
        return deployment

    spec = CheckSpec(look)
    context = Context(
        spec=spec,
        target=target,
        catalogue=catalogue,
        timings=target.timings(catalogue),
        deployment=deployment,
        audit=audit,
        seed=0,
        say_waiting=lambda _what, _seconds: None,
        lease=no_other,
    )
    try:
        async with asyncio.timeout(_LIMIT):
            provided: dict[str, Any] = {name: await context.get(kind) for name, kind in spec.provided().items()}
            if not target.startable:
                await look(**provided)
    except WronglyGiven as wrong:
        return str(wrong)
    except Exception:  # noqa: BLE001 - whatever else it is, the checks will say it of a row
        return None
    finally:
        with suppress(Exception):
            async with asyncio.timeout(_LIMIT):
                await context.stack.aclose()
    return None
