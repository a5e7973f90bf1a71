"""Tries the credentials of the descriptor before the first check, with two calls that change nothing."""

from typing import NoReturn

from holdfast.check.finding import Inconclusive, NotObservable, WronglyGiven
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.shared.wire import Request

_NOBODY = "00000000-0000-4000-8000-000000000000"
_STATUS = Request("GET", "/admin/drain-mode/status")
_QUEUE = "/instances/…/queue/status"


async def look(admission: Admission) -> list[str]:
    """Returns which credentials the target took; raises WronglyGiven if it refuses one of them."""
    target, took = admission.context.target, list[str]()
    if target.credentials.get("admin_token"):
        answer = _answered(await admission.call(_STATUS, None, headers=admission.admin_headers), _STATUS.path)
        if answer.status in (401, 403):
            _refused("admin_token", f"{_STATUS.method} {_STATUS.path}", answer.status, str(target.file))
        took += ["admin_token"] if 200 <= answer.status < 300 else []
    try:
        user = admission.user()
    except NotObservable:
        return took
    answer = _answered(await admission.call(wire.queue_status("holdfast-preflight", _NOBODY), user), _QUEUE)
    key = "auth_secret" if "auth_secret" in target.credentials else "identities"
    if answer.status == 401 or answer.reason == "NOT_AUTHENTICATED":
        _refused(key, f"GET {_QUEUE}", answer.status, str(target.file))
    return [*took, key] if answer.status < 500 else took  # a server that fails has not looked at it


def _answered(answer: wire.Answer, path: str) -> wire.Answer:
    if not answer.status:
        raise Inconclusive(f"no answer to GET {path}")
    return answer


def _refused(key: str, call: str, status: int, file: str) -> NoReturn:
    raise WronglyGiven(f"[credentials] {key}: the target answers {status} to {call}; mend it in {file}")
