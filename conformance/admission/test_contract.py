"""The published contract: what a generated or a real request gets is documented, by status and by schema."""

import asyncio
import functools
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import Finding, Inconclusive
from holdfast.check.generated import Round, answered, fuzz
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.bystanders import bystanders
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.judging import none_of
from holdfast.conformance.admission.wire import Answer
from holdfast.conformance.shared.contract import must_be_declared
from holdfast.conformance.shared.wire import Request
from holdfast.spec.contract import Contract, document

# Generated requests per operation, for valid and for invalid data each.
EXAMPLES = 5


# Busy: a thread that computes slows the loop on which all other checks are timed.
@verifies("AD-ADMIT-05", isolation="quiet", busy=True, waits="5*prompt")
@pytest.mark.parametrize("tag", ["admission", "queue", "administration", "observation"])
async def test_generated_requests_get_documented_answers(admission: Admission, tag: str) -> None:
    must_be_declared(admission.features.get("openapi"))
    async with bystanders(admission):
        arena = await admission.instance()
        await in_thread(lambda call: _fuzz(call, admission, arena, tag), deadline=admission.T.recovery_never)


def _fuzz(call: Call, admission: Admission, arena: Instance, tag: str) -> None:
    import requests

    with requests.Session() as session:
        session.verify = False  # as in the driver: whether a connection is encrypted is judged, not who signed for it

        def ask(case: Any, caller: Callable[[], dict[str, str]]) -> Any:
            call(asyncio.sleep(0))  # ends the thread with its check
            url, within, headers = admission.url(), admission.answer_timeout, caller()
            response = answered(lambda: case.call(base_url=url, session=session, headers=headers, timeout=within))
            if response.status_code >= 500 and "Retry-After" not in response.headers:
                raise Finding(["no server error"], f"{response.status_code}, for {case.as_curl_command()[:500]}")
            return response

        trusted = functools.partial(_credentials, admission)
        rounds = [Round(trusted, ids={"instanceId": arena.id}), Round(dict), Round(trusted, sound=False)]
        fuzz(document("admission"), tag, rounds, seed=admission.context.seed, count=EXAMPLES, ask=ask)


def _credentials(admission: Admission) -> dict[str, str]:
    """Returns the headers of a fresh user, so that no lock hides the answer."""
    return {"Authorization": f"Bearer {admission.user().bearer}", **admission.admin_headers}


@verifies("AD-ADMIT-05", waits="promote_within + wait_tolerance + 2*prompt")
async def test_every_answer_of_an_ordinary_day_is_documented(admission: Admission, T: SpecTime) -> None:
    must_be_declared(admission.features.get("openapi"))
    contract, exchanges = Contract("admission"), list[tuple[Request, Answer]]()
    admission.listeners.append(lambda request, answer: exchanges.append((request, answer)))

    await _every_kind_of_refusal(admission, T)
    await _every_other_call(admission)

    kinds = {(answer.status, answer.outcome, answer.reason) for _, answer in exchanges}
    if len(kinds) < 15:
        raise Inconclusive(f"only {len(kinds)} kinds of answers, too few to speak of")
    none_of(sorted(map(str, contract.undocumented(exchanges))), f"undocumented one of {len(exchanges)} answers")


async def _every_kind_of_refusal(admission: Admission, T: SpecTime) -> None:
    arena, other = await admission.instance(), await admission.instance()
    inside, outdated, suspended, unknown = await admission.characters(4)
    nowhere = Instance(admission, f"i-{uuid.uuid4().hex}")
    await arena.admit(inside)
    await arena.offer(inside)
    await other.connect(inside)
    await arena.connect(inside, replace=str(uuid.uuid4()))
    await arena.connect(inside, token=str(uuid.uuid4()))
    await nowhere.connect(inside)
    await arena.connect(unknown, as_user=admission.user())
    await admission.call(arena.request(str(uuid.uuid4())), unknown.user)
    await admission.call(arena.request(None), unknown.user)
    await admission.suspend(suspended)
    await arena.connect(suspended)
    for _ in range(T.count("rate_failures") + 1):
        await arena.fail(outdated)
    for state in ("maintenance", "shutting_down"):
        await other.put(capacity=1, state=state)
        await other.connect(unknown)
    await other.put(capacity=1)
    await other.drain()
    await other.connect(unknown)
    await admission.ask_admin(Request("GET", "/admin/drain-mode/status"))
    await other.drain(on=False)
    await admission.ask_admin(Request("GET", "/admin/drain-mode/status"))
    bearer = {"Authorization": f"Bearer {unknown.user.bearer}", "Content-Type": "application/json"}
    for body in (b"{", b"[]", b" " * 100_000):
        await admission.raw("POST", f"/instances/{arena.id}/connect", data=body, headers=bearer)
        await admission.raw("POST", f"/instances/{arena.id}/disconnect", data=body, headers=bearer)


async def _every_other_call(admission: Admission) -> None:
    arena = await admission.instance(capacity=1)
    first, second, third = await admission.characters(3)
    session, socket = await arena.join(first)
    await arena.enqueue(second)
    await arena.enqueue(third)
    offer = await arena.offer(first)
    for user in (second.user, None):
        await admission.call(wire.queue_status(arena.id, first.id), user)
        await admission.call(wire.leave(arena.id, session.session_id), user)
        await admission.call(wire.unqueue(arena.id, third.id), user)
        await admission.call(wire.cancel(arena.id, offer), user)
        await admission.call(wire.put_instance(arena.id, capacity=2), user)
    await arena.status(second)
    await arena.unqueue(third)
    await arena.unqueue(third)
    if admission.features.has("cancel_replacement"):
        await arena.cancel(offer, first)
        await arena.cancel(offer, first)
    gone = await admission.lose(socket)
    await arena.resume(first, session, gone=gone)
    await arena.release(session.session_id, first)
    await arena.leave(session.session_id, first)
    await arena.promoted(second)
    await admission.call(Request("GET", "/health"), None)
