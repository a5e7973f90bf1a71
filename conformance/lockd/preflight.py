"""Tries the certificates of the descriptor before the first check, with a question that changes nothing."""

from collections.abc import Callable

from holdfast.check.finding import Inconclusive, NotObservable, WronglyGiven
from holdfast.check.no_answer import UNTRUSTED
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.identities import Identity
from holdfast.conformance.shared.wire import Request


async def look(lockd: Lockd) -> list[str]:
    """Returns which credentials the target took; raises WronglyGiven if it does not know the CA, or the client."""
    alone = lockd.dialect.lone_node
    if alone and alone not in lockd.nodes:
        raise _wrong(lockd, f"[dialect] lone_node: there is no node {alone!r}; there are: {', '.join(lockd.nodes)}")

    def issued() -> Identity:
        return lockd.authority.coordinator_client()

    took = await _try(lockd, "ca", issued)
    return took + await _try(lockd, "tc_client_bundle", lambda: lockd.client)


async def _try(lockd: Lockd, key: str, identity: Callable[[], Identity]) -> list[str]:
    """Asks as this identity; what was not given at all, or is shown to nobody, is left to the rows."""
    if not lockd.context.target.credentials.get(key) or not lockd.url().startswith("https:"):
        return []
    try:
        answer = await lockd.call(Request("GET", wire.LEADER), identity())
    except NotObservable as unusable:
        raise _wrong(lockd, unusable.hook) from unusable
    if UNTRUSTED in answer.text:
        raise _wrong(lockd, f"[credentials] {key}: its CA did not sign the certificate of {lockd.url()}")
    if answer.handshake_failed or answer.status in (401, 403):
        how = f"answers {answer.status} to it" if answer.status else "refuses its handshake"
        raise _wrong(lockd, f"[credentials] {key}: {lockd.url()} {how}")
    if not answer.status:
        raise Inconclusive(f"no answer to GET {wire.LEADER}")
    return [key] if answer.status < 500 else []  # a server that fails has not looked at it


def _wrong(lockd: Lockd, what: str) -> WronglyGiven:
    return WronglyGiven(f"{what}; mend it in {lockd.context.target.file}")
