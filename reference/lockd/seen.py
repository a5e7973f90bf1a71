"""What a peer answers to GET /v1/tc/leader."""

from dataclasses import dataclass
from typing import Any

from holdfast.reference.lockd.wire import whole


@dataclass(frozen=True)
class Seen:
    leader_id: str = ""
    leader_endpoint: str = ""
    term: int = 0
    expires_at: int = 0


def read_seen(body: Any) -> Seen:
    """Reads a peer's answer; one of the wrong form counts as empty, since peers are trusted no more than callers."""
    texts = [body.get(name) or "" for name in ("leader_id", "leader_endpoint")]
    numbers = [whole(body.get(name)) for name in ("term", "expires_at")]
    if not all(isinstance(each, str) for each in texts):
        return Seen()
    term, expires_at = numbers
    if term is None or expires_at is None or term < 0 or expires_at < 0:
        return Seen()
    return Seen(texts[0], texts[1], term, expires_at)
