"""Violations of the rows about what the log says of abuse, and what it must not show."""

from typing import Any

from holdfast.reference.admission.attempts import Attempt, Attempts
from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.verdicts import Verdict


@violates("AD-SEC-04", 1, "Token failures appear at debug level only.")
class DebugLevel(Attempts):
    def watch(self, attempt: Attempt, verdict: Verdict) -> None:
        if "suspicious" in verdict:
            self.node.events.log("debug", f"Token of {attempt.user_id} refused: {verdict['suspicious']}.")
        else:
            super().watch(attempt, verdict)


violation(
    "AD-SEC-04",
    2,
    "A mismatch is logged like an expired token.",
    lua={
        "token_refusal": """
local seen = watch_suspicious(facts, 'rapid_token_failures')
return refuse(facts, 'INVALID_RECONNECTION_TOKEN', {suspicious = 'rapid_token_failures', seen = seen})"""
    },
)

violation(
    "AD-SEC-04",
    3,
    "Every single failure is flagged as suspicious.",
    settings=lambda _: {"suspicious_token_failures": 1, "suspicious_mismatches": 1},
)


@violates("AD-SEC-04", 4, "A foreign attempt leaves only the ordinary connection.failed.")
class NobodyDenied(Attempts):
    def watch(self, attempt: Attempt, verdict: Verdict) -> None:
        if verdict["reason"] != "CHARACTER_NOT_OWNED":
            super().watch(attempt, verdict)


violation("AD-SEC-05", 1, "Only plain HTTP is implemented.", settings=lambda _: {"tls_port": 0})


@violates("AD-SEC-05", 2, "connection.reconnect_attempt logs the presented token.")
class TokenInTheLog(Attempts):
    def emit(self, event: str, attempt: Attempt, **fields: Any) -> None:
        if event == "connection.reconnect_attempt":
            fields["reconnectionToken"] = attempt.reconnection_token
        super().emit(event, attempt, **fields)
