"""What `holdfast doctor` looks at first, because without it no run makes sense: reach, files, credentials."""

import asyncio
import socket
from collections.abc import AsyncIterator

from holdfast.check.audit import Audit
from holdfast.cli.doctor_lines import Seen
from holdfast.run.credentials import look_at_credentials
from holdfast.spec.catalogue import Catalogue
from holdfast.target.credential_files import wrong_file
from holdfast.target.deployment import Deployment
from holdfast.target.descriptor import Target
from holdfast.target.preflight import not_reached

_LOOPBACK = ("127.0.0.1", "::1", "localhost")


async def first_looks(target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit) -> list[Seen]:
    return [one async for one in _looks(target, catalogue, deployment, audit)]


async def _looks(target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit) -> AsyncIterator[Seen]:
    if unreached := await asyncio.to_thread(not_reached, target):
        yield Seen(False, "the target is there", unreached)
    if wrong := wrong_file(target, deployment.fill):
        yield Seen(False, "files", wrong)
    else:
        yield await _credentials(target, catalogue, deployment, audit)
    if seen := _harness(target):
        yield seen


async def _credentials(target: Target, catalogue: Catalogue, deployment: Deployment, audit: Audit) -> Seen:
    if not target.credentials:
        return Seen(None, "credentials", "none are given; rows that need them are not-observable")
    looked = await look_at_credentials(target, catalogue, deployment, audit)
    if looked.wrong:
        return Seen(False, "credentials", looked.wrong)
    if looked.untried or not looked.took:
        return Seen(None, "credentials", f"not tried: {looked.untried or 'the target has no call that would tell'}")
    others = sorted(target.credentials.keys() - looked.took)
    rest = f"; not tried: {', '.join(others)}" if others else ""
    return Seen(True, "credentials", f"the target takes {', '.join(looked.took)}{rest}")


def _harness(target: Target) -> Seen | None:
    """Where our stubs are to listen, if there is something to say of it; only the target can tell if it gets there."""
    bind, advertise = str(target.harness["bind"]), str(target.harness["advertise"])
    try:
        with socket.socket(socket.AF_INET6 if ":" in bind else socket.AF_INET) as ours:
            ours.bind((bind, 0))
    except OSError as error:
        return Seen(False, "[harness] bind", f"{bind}: {error.strerror or error}; name an address of this machine")
    if advertise in _LOOPBACK:
        return None
    return Seen(None, "[harness] advertise", f"{advertise} not tried: only the target knows whether it gets there")
