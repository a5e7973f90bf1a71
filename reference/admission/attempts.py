"""One connection attempt, from its receipt to its one outcome (spec 9: the 10 s rule, spec 11: atomic admission).

Invariant: every attempt has exactly one outcome, at its deadline at the latest, and what Redis holds agrees with it.
The deadline is counted from receipt and covers everything: reading the body, the checks, tokens, closing an old
socket.

Who owns what. The script `decide` decides and writes, in one run. The node adds only what Redis can't know
(credentials, build, fresh ids, deadline) and turns the verdict into answer, events and counters. An `Attempt` belongs
to the one task that settles it.

Order: `begin` logs the attempt; `decide` asks the script; `finish` logs the one outcome and counts it. The script is
asked a second time only if it answered `occupied`: the token is good, but another socket has the session and must be
closed first, so that two sockets are never attached at once.

Late work. A coroutine can be cancelled, a script that was sent can't. Two guards keep an attempt that was answered
with timeout or outage from leaving a session, an entry or a rotated token behind:

1. The script gets the deadline in Redis time and changes nothing after it; it answers `late`.
2. While `unanswered` is true, a run may have taken effect whose answer is missing. The node then owes Redis an `undo`
   of the attempt (recovery.py), which works from the journal that the run wrote. It uses the connection of the run
   and so comes after it; if that connection broke, it is the first thing on the next one.
"""

import asyncio
import uuid
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.reference.admission.verdicts import Record, Verdict
from holdfast.reference.shared.redislink import RedisAway

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

COARSE = 0.002
"""Seconds by which a timer of the event loop may fire early."""


def fresh_id() -> str:
    return str(uuid.uuid4())


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What the node alone knows of an attempt.

    `character_id` is empty and a token is None when the request has none. `malformed` is the HTTP status of a request
    that has the wrong form. `unanswered` is true from sending a script until its answer.
    """

    instance_id: str
    user_id: str | None
    received: float
    deadline: float
    character_id: str = ""
    build_ok: bool = False
    reconnection_token: str | None = None
    replace_token: str | None = None
    malformed: int | None = None
    attempt_id: str = field(default_factory=fresh_id)
    new_token: str = field(default_factory=fresh_id)
    unanswered: bool = False

    @property
    def kind(self) -> str:
        if self.reconnection_token is not None:
            return "reconnect"
        return "admit" if self.replace_token is None else "replace"


class Attempts:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def deadline_of(self, received: float) -> float:
        """Returns the end of the attempt's time, whatever the request says."""
        return received + self.node.settings.attempt_deadline

    async def settle(self, attempt: Attempt) -> Verdict:
        """Returns the one outcome of the attempt, after it was logged and counted."""
        self.begin(attempt)
        try:
            async with asyncio.timeout(attempt.deadline - monotonic()):
                verdict = await self.decide(attempt)
        except TimeoutError:
            verdict = await self.timed_out(attempt)
        except RedisAway:
            verdict = self.outage(attempt)
        self.finish(attempt, verdict)
        return verdict

    def begin(self, attempt: Attempt) -> None:
        self.emit("connection.attempt", attempt)
        if attempt.reconnection_token is not None:
            self.emit("connection.reconnect_attempt", attempt)
            self.node.metrics.count_presentation()

    async def decide(self, attempt: Attempt) -> Verdict:
        """Returns the verdict of the script; a bad id and a caller without credentials never get that far."""
        if not self.node.rules.is_id(attempt.instance_id):
            attempt.malformed = attempt.malformed or 400
            return {"outcome": "failed", "reason": "INVALID_INSTANCE"}
        if attempt.user_id is None:
            return {"outcome": "failed", "reason": "NOT_AUTHENTICATED"}
        verdict = await self.ask(attempt, self.facts(attempt, attempt.user_id))
        if verdict["outcome"] == "occupied":
            verdict = await self.take_over(attempt, attempt.user_id, verdict["socket"])
        if verdict["outcome"] == "late":
            await self.until_deadline()
        return verdict

    def facts(self, attempt: Attempt, user_id: str) -> Record:
        facts: Record = {
            "kind": attempt.kind,
            "attemptId": attempt.attempt_id,
            "userId": user_id,
            "characterId": attempt.character_id,
            "instanceId": attempt.instance_id,
            "buildOk": attempt.build_ok,
            "newSessionId": fresh_id(),
            "newToken": attempt.new_token,
            "newReplacementToken": fresh_id(),
            "deadlineMs": self.node.store.clock.redis_ms(attempt.deadline),
        }
        if attempt.reconnection_token is not None:
            facts["reconnectionToken"] = attempt.reconnection_token
        if attempt.replace_token is not None:
            facts["replaceToken"] = attempt.replace_token
        return facts

    async def ask(self, attempt: Attempt, facts: Record) -> Verdict:
        attempt.unanswered = self.node.link.up  # without a connection nothing is sent
        verdict = await self.node.store.decide(facts)
        attempt.unanswered = False
        return verdict

    async def take_over(self, attempt: Attempt, user_id: str, old_socket: str) -> Verdict:
        """Closes the socket that has the session, then asks again. Raises RedisAway if the socket may still be open."""
        if not await self.node.kicks.evict(old_socket, 4002):
            raise RedisAway("The node with the old socket does not answer.")
        verdict = await self.ask(attempt, self.facts(attempt, user_id) | {"evicted": old_socket})
        if verdict["outcome"] == "occupied":
            raise RedisAway("Another socket was opened meanwhile.")
        return verdict

    async def until_deadline(self) -> NoReturn:
        """Waits for the timeout, so that a run that was late by the Redis clock is not answered before the deadline."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("A future without a result has ended.")

    async def timed_out(self, attempt: Attempt) -> Verdict:
        """Returns the timeout, never before the deadline, although timers of the event loop may fire a little early."""
        if (left := attempt.deadline - monotonic()) > 0:
            await asyncio.sleep(left + COARSE)
        self.undo_late(attempt)
        return {"outcome": "timeout", "reason": "TIMEOUT"}

    def outage(self, attempt: Attempt) -> Verdict:
        self.undo_late(attempt)
        return {"outcome": "failed", "reason": "INTERNAL_ERROR"}

    def undo_late(self, attempt: Attempt) -> None:
        """Takes back a run whose answer is missing, because the client is told that nothing happened."""
        if not attempt.unanswered:
            return
        facts = {
            "attemptId": attempt.attempt_id,
            "userId": attempt.user_id,
            "characterId": attempt.character_id,
            "instanceId": attempt.instance_id,
            "newToken": attempt.new_token,
        }
        self.node.recovery.owe("undo", facts, lambda _: self.node.promoter.wake(attempt.instance_id))

    def finish(self, attempt: Attempt, verdict: Verdict) -> None:
        """Logs the one outcome event and counts the attempt once."""
        if verdict["outcome"] == "success":
            self.succeeded(attempt, verdict)
        elif verdict["outcome"] == "queued":
            self.emit("connection.queued", attempt, position=verdict["position"], depth=verdict["depth"])
        elif verdict["outcome"] == "timeout":
            self.emit("connection.timeout", attempt, elapsedMs=round(self.elapsed(attempt) * 1000))
        else:
            self.refused(attempt, verdict)
        self.node.metrics.count_attempt(self.outcome_label(verdict))

    def outcome_label(self, verdict: Verdict) -> str:
        return "throttled" if verdict.get("reason") == "RATE_LIMITED" else verdict["outcome"]

    def elapsed(self, attempt: Attempt) -> float:
        return monotonic() - attempt.received

    def succeeded(self, attempt: Attempt, verdict: Verdict) -> None:
        if verdict.get("reconnected"):
            self.emit("connection.reconnected", attempt, sessionId=verdict["sessionId"])
            self.node.metrics.count_resumed()
            return
        seconds = self.elapsed(attempt)
        self.emit(
            "connection.admitted",
            attempt,
            sessionId=verdict["sessionId"],
            fromQueue=False,
            latencyMs=round(seconds * 1000, 3),
        )
        self.node.metrics.observe_latency(seconds)
        if "replaced" in verdict:
            old = verdict["replaced"]
            self.emit_disconnected(attempt, old["sessionId"])
            self.node.kicks.send(old.get("socket"), 4001)

    def emit_disconnected(self, attempt: Attempt, session_id: str) -> None:
        self.node.events.emit(
            "connection.disconnected",
            instanceId=attempt.instance_id,
            characterId=attempt.character_id,
            userId=attempt.user_id,
            sessionId=session_id,
            reason="replace",
        )

    def refused(self, attempt: Attempt, verdict: Verdict) -> None:
        reason = verdict["reason"]
        self.count_refusal(verdict)
        if reason == "RATE_LIMITED":
            seconds = self.node.rules.retry_after(reason, verdict["lockMs"])
            self.emit("connection.throttled", attempt, retryAfterSeconds=seconds)
            return
        self.emit("connection.failed", attempt, reason=reason)
        self.watch(attempt, verdict)

    def count_refusal(self, verdict: Verdict) -> None:
        """Counts the two kinds of refusal that have their own counter; failures that lead to a lock are not blocked."""
        if verdict["reason"] == "RATE_LIMITED":
            self.node.metrics.blocked.inc()
        elif verdict["reason"] == "VERSION_MISMATCH":
            self.node.metrics.mismatches.inc()

    def watch(self, attempt: Attempt, verdict: Verdict) -> None:
        """Logs suspicious patterns (spec 7)."""
        if verdict["reason"] == "CHARACTER_NOT_OWNED":
            self.emit("security_event", attempt, eventType="access_denied")
        if "suspicious" in verdict and self.node.rules.suspicious(verdict["suspicious"], verdict["seen"]):
            pattern = verdict["suspicious"]
            self.emit("security_event", attempt, eventType="suspicious_activity", pattern=pattern)

    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        self.node.events.emit(
            event,
            instanceId=attempt.instance_id[:64],
            characterId=attempt.character_id,
            userId=attempt.user_id,
            attemptId=attempt.attempt_id,
            **fields,
        )
