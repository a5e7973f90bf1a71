"""The published contract: what a generated or a real request gets is documented, by status and by schema."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import Finding, Inconclusive, expect
from holdfast.check.generated import Round, answered, fuzz, https_session, json_values, try_examples
from holdfast.check.verifies import verifies
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.lockd.judge import names
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.contract import must_be_declared
from holdfast.conformance.shared.wire import Request
from holdfast.spec.contract import Contract, document

# Generated requests per operation, for valid and for invalid data each.
EXAMPLES = 5
# Kinds of answers, by path, status and code, that an ordinary day has at least.
LEAST_KINDS = 30
# Generated bodies per path.
BODIES = 25
# The fields that each call reads. A leave reads none, so every body is a valid leave.
FIELDS = {
    wire.ACQUIRE: ("candidate_id", "candidate_endpoint", "term", "ttl_ms"),
    wire.RENEW: ("leader_id", "term", "ttl_ms"),
    wire.RELEASE: ("leader_id", "term"),
    wire.ANNOUNCE: ("self_endpoint",),
    wire.REGISTER: ("backend_hash", "endpoint"),
    wire.UNREGISTER: ("backend_hash", "endpoint"),
    wire.DECIDE: ("txn_id", "state", "participants", "tc_term", "expires_at_unix"),
    wire.COMMIT: ("txn_id", "participants", "tc_term"),
    wire.REPLAY: ("txn_id",),
}
ENDPOINTS = ("self_endpoint", "endpoint", "candidate_endpoint")


async def _state(lockd: Lockd, node: str) -> str:
    leader, _ = await lockd.leads(node)
    backends = [f"{name} ({names(backend.endpoints)})" for name, backend in (await lockd.registered(node)).items()]
    members = names(await lockd.members(node))
    return f"leader {leader.id} in term {leader.term}; members {members}; backends {names(sorted(backends))}"


@contextlib.asynccontextmanager
async def _unmoved(lockd: Lockd, node: str) -> AsyncIterator[None]:
    """Raises Finding if leader, members or registry differ after the block from what they were before it."""
    lockd.context.lapses = True  # a node that gets no processor time for a whole lease begins another term
    await lockd.backend_of(node)
    before = await _state(lockd, node)
    yield
    expect(await _state(lockd, node), before, why="leader, term, members and registry")


# Busy: a thread that computes slows the loop on which all other checks are timed.
@pytest.mark.parametrize("tag", ["election", "membership", "registry", "transactions", "observation"])
@verifies("TC-DATA-04", isolation="quiet", nodes=1, busy=True, waits="3*lease_settled_max + rm_listed_max")
async def test_generated_requests_get_documented_answers(lockd: Lockd, tag: str) -> None:
    """Generated requests of a server may announce and register anything; the check removes all of it at the end."""
    must_be_declared(lockd.context.target.dialect.get("openapi"))
    node, server = lockd.lone, lockd.authority.server(name="x")
    await lockd.leads(node)
    await lockd.backend_of(node)
    members, backends = await lockd.members(node), await lockd.registered(node)
    await in_thread(lambda call: _fuzz(call, lockd, node, server, tag), deadline=2 * lockd.longest_answer())
    await lockd.arrange("TC-LEAVE-01", wire.leave(lockd.dialect.guard), server, node=node)
    await lockd.leads(node)
    expect(names(await lockd.members(node)), names(members), why="members, once the generated one has left")
    for backend in (await lockd.registered(node)).keys() - backends.keys():
        await lockd.arrange("TC-RM-04", wire.unregister(backend, nowhere(1)), server, node=node)
    left = sorted(await lockd.registered(node))
    expect(names(left), names(sorted(backends)), why="the registry without the generated entries")


def _fuzz(call: Call, lockd: Lockd, node: str, server: Identity, tag: str) -> None:
    callers = (lockd.client, server)
    with contextlib.ExitStack() as stack:
        sessions = {who.name: stack.enter_context(https_session(who.client_context)) for who in callers}

        def ask(case: Any, caller: str) -> Any:
            call(asyncio.sleep(0))  # ends the thread with its check
            _stay_here(case.body)
            url, within = lockd.url(node), lockd.longest_answer()
            return answered(lambda: case.call(base_url=url, session=sessions[caller], timeout=within))

        rounds = [Round(name, sound=sound) for name in sessions for sound in (True, False)]
        fuzz(document("lockd"), tag, rounds, seed=lockd.context.seed, count=EXAMPLES, ask=ask)


def _stay_here(body: Any) -> None:
    """Replaces generated endpoints by a local port where nobody listens: a node calls every endpoint it gets."""
    for name in ENDPOINTS:
        value = body.get(name) if isinstance(body, dict) else None
        with contextlib.suppress(ValueError):
            if isinstance(value, str) and urlsplit(value).netloc:
                body[name] = nowhere(1)


@pytest.mark.parametrize("path", FIELDS)
@verifies("TC-DATA-04", isolation="quiet", nodes=1, busy=True, waits="2*lease_settled_max + rm_listed_max")
async def test_generated_json_is_refused_with_a_code_and_changes_nothing(lockd: Lockd, path: str) -> None:
    node, server = lockd.lone, lockd.authority.server(name="x")

    def generate(call: Call) -> None:
        def is_refused(value: Any) -> None:
            _stay_here(value)
            answer = call(lockd.call(Request("POST", path, value), server, node=node))
            if not 400 <= answer.status < 500 or not answer.code:
                raise Finding(["4xx with an error code"], answer.describe(), f"{path} {json.dumps(value)}"[:500])

        try_examples(lockd.context.seed, json_values(*FIELDS[path]), BODIES, is_refused)

    async with _unmoved(lockd, node):
        await in_thread(generate, deadline=2 * lockd.longest_answer())


@verifies("TC-DATA-04", isolation="quiet", nodes=1, waits="2*lease_settled_max + rm_listed_max")
async def test_every_answer_of_an_ordinary_day_is_documented(lockd: Lockd) -> None:
    must_be_declared(lockd.context.target.dialect.get("openapi"))
    contract, exchanges = Contract("lockd"), list[tuple[Request, Answer]]()
    async with _unmoved(lockd, lockd.lone):
        lockd.listeners.append(lambda request, answer: exchanges.append((request, answer)))
        await _an_ordinary_day(lockd)

    kinds = {(request.path, answer.status, answer.code) for request, answer in exchanges}
    if len(kinds) < LEAST_KINDS:
        raise Inconclusive(f"only {len(kinds)} kinds of answers were seen, which is no ordinary day")
    expect(contract.undocumented(exchanges), set(), why=f"of {len(exchanges)} answers")


async def _an_ordinary_day(lockd: Lockd) -> None:
    """Makes every call: accepted, refused by a server and by a client certificate, and refused for its content."""
    node, server = lockd.lone, lockd.authority.server(name="x")
    (leader, _), ttl = await lockd.leads(node), int(lockd.T.probe_lease_ttl * 1000)
    txn, unknown = lockd.txn(), lockd.txn()
    calls = [
        wire.leader(),
        wire.members(),
        wire.backends(),
        Request("GET", wire.HEALTH),
        wire.acquire(server.node_id, nowhere(1), leader.term + 1, ttl),
        wire.renew(server.node_id, leader.term, ttl),
        wire.release(server.node_id, leader.term),
        wire.register("h1", nowhere(1)),
        wire.register("h1", nowhere(1), lockd.dialect.replica),
        wire.unregister("h1", nowhere(1)),
        wire.decide(txn, "pending", [wire.participant("default", "k")]),
        wire.decide(txn, "commit"),
        wire.decide(txn, "rollback"),
        wire.replay(txn),
        wire.replay(unknown),
        wire.apply(txn, "commit", term=leader.term),
        wire.apply(txn, "rollback", term=leader.term),
        wire.apply(txn, "commit"),
        wire.apply(unknown, "rollback", term=max(1, leader.term - 1)),
        *(Request("POST", path, {}) for path in FIELDS),
        wire.announce(nowhere(1)),
        wire.leave(lockd.dialect.guard),
    ]
    for request in calls:
        for who in (lockd.client, server):
            await lockd.call(request, who, node=node)
