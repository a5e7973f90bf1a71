"""Small demands on answers, each with the rows that state it."""

from holdfast.check.walk.vocabulary import Rule, Seen
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.walks import rule

STALE, ACTIVE, UNAVAILABLE = "tc_term_stale", "tc_lease_active", "tc_unavailable"


def accepted(answer: Answer, *rows: str) -> Rule:
    return rule("200", answer.ok, *rows)


def turned_away(answer: Answer, *rows: str) -> Rule:
    """A refusal, whatever its code: an error status, or no TLS at all."""
    return rule("a refusal", answer.status >= 400 or answer.handshake_failed, *rows)


def refused_as_malformed(answer: Answer, *rows: str) -> Rule:
    """A refusal, whatever else keeps the call from being served; an internal error is none."""
    return rule("a refusal, and no internal error", answer.status >= 400 and answer.status != 500, *rows)


def refusal(answer: Answer, codes: tuple[str, ...], *rows: str) -> Rule:
    return rule(" or ".join(codes), answer.status >= 400 and answer.code in codes, *rows)


def lasts(answer: Answer, seen: Seen, ttl: float, tolerance: float, *rows: str) -> Rule:
    """The answer's `expires_at` is this long after the call, on the target's clock."""
    left = answer.expires_at / 1000 - answer.wall
    took = seen.received - seen.sent
    held = ttl - tolerance - took <= left <= ttl + tolerance
    return rule(f"an expiry {ttl:.2f} s from now", held, *rows)
