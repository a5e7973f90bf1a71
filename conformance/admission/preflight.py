"""Tries the credentials of the descriptor before the first check, with two calls that change nothing."""

from typing import NoReturn

from holdfast.check.finding import NotObservable, WronglyGiven
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.shared.wire import Request

_NOBODY = "00000000-0000-4000-8000-000000000000"
_STATUS = Request("GET", "/admin/drain-mode/status")


async def look(admission: Admission) -> None:
    """Raises WronglyGiven if the target does not take the suite's bearer tokens or its administration token."""
    target = admission.context.target
    answer = await admission.call(_STATUS, None, headers=admission.admin_headers)
    if answer.status in (401, 403):
        _refused("admin_token", f"{_STATUS.method} {_STATUS.path}", answer.status, str(target.file))
    try:
        user = admission.user()
    except NotObservable:
        return
    answer = await admission.call(wire.queue_status("holdfast-preflight", _NOBODY), user)
    if answer.status == 401:
        key = "auth_secret" if "auth_secret" in target.credentials else "identities"
        _refused(key, "GET /instances/…/queue/status", answer.status, str(target.file))


def _refused(key: str, call: str, status: int, file: str) -> NoReturn:
    raise WronglyGiven(f"[credentials] {key}: the target answers {status} to {call}; mend it in {file}")
