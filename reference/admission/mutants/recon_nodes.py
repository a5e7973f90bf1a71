"""Violations of the rows about reconnecting through any node and after a crash."""

from holdfast.reference.admission.mutants.table import violates, violation
from holdfast.reference.admission.sockets import Sockets

TAKEN_OVER = 4002

# The node's name in the keys stands for its memory: no other node finds the records.
violation(
    "AD-RECON-08",
    1,
    "Grace timers and tokens are kept by the node that had the socket.",
    lua={
        "token_key": "return key('session:reconnect', limits.node .. ':' .. token)",
        "grace_key": "return key('session:grace', limits.node)",
    },
)


@violates("AD-RECON-08", 2, "Both sockets stay attached and receive frames.")
class BothStay(Sockets):
    async def close(self, socket_id: str, code: int) -> None:
        if code != TAKEN_OVER:
            await super().close(socket_id, code)


# Takes a session for stale that was resumed and whose client has not opened the new socket yet.
violation(
    "AD-RECON-10",
    1,
    "A janitor that ignores a reconnect in progress loses some of them.",
    lua={
        "is_stale": """
local record = session_by_id(session.sessionId)
return record and not record.socket and record.lastHeartbeatAt > record.admittedAt
  or now_ms - tonumber(redis.call('GET', beat_key(session)) or 0) > limits.staleMs"""
    },
)

violation(
    "AD-RECON-10",
    2,
    "The token is accepted only in state grace, so after a crash nobody can reconnect until the stale limit.",
    lua={"resumable": "return session.state == 'grace' and session.graceExpiresAt > milliseconds(facts)"},
)
