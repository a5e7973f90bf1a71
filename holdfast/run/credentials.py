"""Looks once, before the first check, whether what the descriptor gave us is any good: files, then credentials.

A wrong credential fails every row in its own way, and none of them names it. So the suite of a spec may have a module
`preflight` with a function `look`, which asks for drivers by annotation as checks do, tries what it was given with
calls that change nothing, and returns the names of what was taken, or raises `WronglyGiven` with one sentence. A driver
may raise it too when it is made, where its own part of the descriptor makes no sense. `look` is not called where
Holdfast starts the nodes and hands them all of the same credentials: if they refuse those, the rows say so. Anything
else that goes wrong here is left to the checks.
"""

import asyncio
import importlib
import importlib.util
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from holdfast.check.audit import Audit
from holdfast.check.context import Context
from holdfast.check.finding import WronglyGiven
from holdfast.check.verifies import CheckSpec
from holdfast.spec.catalogue import Catalogue
from holdfast.target.credential_files import wrong_file
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target

_LIMIT = 3.0


@dataclass(frozen=True)
class Looked:
    """`wrong` is what was given wrongly, one sentence; `untried` is why nobody could tell; `took` are good ones."""

    wrong: str = ""
    untried: str = ""
    took: tuple[str, ...] = ()


async def first_look(target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit) -> str | None:
    """Returns what was given wrongly, as one sentence; None if nothing was, or if nobody can tell."""
    if problem := wrong_file(target, deployment.fill):
        return problem
    seen = await look_at_credentials(target, catalogue, deployment, audit, ours=hands_credentials_over(target))
    return seen.wrong or None


def hands_credentials_over(target: Target) -> bool:
    """Whether the nodes are started with the credentials of the same descriptor, so that both sides have the same.

    A secret that no start command names is one that the nodes have from elsewhere, and may be another one there. What
    is made of placeholders comes from the harness, which gives both sides the same files.
    """
    if not target.startable or not _mentioned(target, "{credentials.", "{files."):
        return False
    written = [key for key, value in target.credentials.items() if "{" not in str(value)]
    return all(_mentioned(target, f"{{credentials.{key}}}") for key in written)


def _mentioned(target: Target, *placeholders: str) -> bool:
    return any(target.mentions(node, *placeholders) for node in target.nodes)


async def look_at_credentials(
    target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit, *, ours: bool = False
) -> Looked:
    """Tries what the suite would show; if they are `ours`, the driver is made and nothing is asked."""
    look = _look_of(target.spec)
    if look is None:
        return Looked(untried=f"the suite of {target.spec} has no call that tries them")
    return await _tried(look, target, catalogue, deployment, audit, ours=ours)


def _look_of(key: str) -> Callable[..., Awaitable[Sequence[str]]] | None:
    name = f"holdfast.conformance.{key}.preflight"
    if importlib.util.find_spec(name) is None:
        return None
    look: Callable[..., Awaitable[Sequence[str]]] = importlib.import_module(name).look
    return look


async def _tried(
    look: Callable[..., Awaitable[Sequence[str]]],
    target: Target,
    catalogue: Catalogue,
    deployment: Deployment,
    audit: Audit,
    *,
    ours: bool,
) -> Looked:
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
            took = () if ours else tuple(await look(**provided))
    except WronglyGiven as wrong:
        return Looked(wrong=str(wrong))
    except Exception as error:  # noqa: BLE001 - whatever else it is, the checks will say it of a row
        return Looked(untried=str(error) or type(error).__name__)
    finally:
        with suppress(Exception):
            async with asyncio.timeout(_LIMIT):
                await context.stack.aclose()
    return Looked(took=took)
