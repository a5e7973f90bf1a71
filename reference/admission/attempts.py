"""One connection attempt, from its receipt to its one outcome (spec 9: the 10 s rule, spec 11: atomic admission)."""

import asyncio
import uuid
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from holdfast.reference.admission.redislink import RedisAway
from holdfast.reference.admission.verdicts import Record, Verdict

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

COARSE = 0.002


def fresh_id() -> str:
    return str(uuid.uuid4())


@dataclass(slots=True, kw_only=True)
class Attempt:
    """What the node alone knows. `character_id` is empty when none was given, a token None when none was."""

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
        """Counted from receipt, whatever the request says."""
        return received + self.node.settings.attempt_deadline

    async def settle(self, attempt: Attempt) -> Verdict:
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
        attempt.unanswered = self.node.link.up
        verdict = await self.node.store.decide(facts)
        attempt.unanswered = False
        return verdict

    async def take_over(self, attempt: Attempt, user_id: str, old_socket: str) -> Verdict:
        """The token is good, but the session has a socket: that one is closed first."""
        if not await self.node.kicks.evict(old_socket, 4002):
            raise RedisAway("The node with the old socket does not answer.")
        verdict = await self.ask(attempt, self.facts(attempt, user_id) | {"evicted": old_socket})
        if verdict["outcome"] == "occupied":
            raise RedisAway("Another socket was opened meanwhile.")
        return verdict

    async def until_deadline(self) -> NoReturn:
        """A run that came too late changed nothing; the client hears of it when its time is over."""
        await asyncio.get_running_loop().create_future()
        raise AssertionError("A future that nobody fulfils was fulfilled.")

    async def timed_out(self, attempt: Attempt) -> Verdict:
        """The loop's clock is coarse and its timers may fire a little early; a timeout never does."""
        if (left := attempt.deadline - monotonic()) > 0:
            await asyncio.sleep(left + COARSE)
        self.undo_late(attempt)
        return {"outcome": "timeout", "reason": "TIMEOUT"}

    def outage(self, attempt: Attempt) -> Verdict:
        self.undo_late(attempt)
        return {"outcome": "failed", "reason": "INTERNAL_ERROR"}

    def undo_late(self, attempt: Attempt) -> None:
        """The client is told that nothing happened; a run whose answer is missing must not stay."""
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
        """One outcome event and one tick of the counter; a replaced session is out."""
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
        """Two kinds of refusal have a counter of their own; the failures that lead to a lock are not blocked."""
        if verdict["reason"] == "RATE_LIMITED":
            self.node.metrics.blocked.inc()
        elif verdict["reason"] == "VERSION_MISMATCH":
            self.node.metrics.mismatches.inc()

    def watch(self, attempt: Attempt, verdict: Verdict) -> None:
        """Suspicious patterns are logged (spec 7)."""
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
