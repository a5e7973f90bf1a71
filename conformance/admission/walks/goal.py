"""Every pair that a walk can reach, written down: what is missing here, nobody would miss.

A situation is a word for the character (`open`, `grace`, …) and, where the instance matters, one for it. Left out are
pairs that the model never draws, because the spec does not say what comes of them, or because the client can't know
what they need: nobody without a session has an offer to confirm, nobody who just came has a token.
"""

from collections.abc import Collection, Iterator

from holdfast.check.walk.vocabulary import NO_NODE, Pair
from holdfast.conformance.admission.walks.commands import KILL
from holdfast.conformance.admission.walks.malformed import MALFORMED

LIVE = ("new", "promoted", "open", "silent")
INSIDE = (*LIVE, "grace")
ANYBODY = ("outside", "waiting", *INSIDE)
MODES = ("", " draining", " closed")
CURRENT, OFFER = "connect with current token", "connect with offer"
VOID_TOKENS = tuple(f"connect with {which} token" for which in ("previous", "unknown", "of sibling"))
VOID_OFFERS = tuple(f"connect with {which} offer" for which in ("previous", "unknown", "of sibling"))
STRANGERS = ("connect as a stranger", "connect with current token as a stranger")
MARKED = ("connect", "connect with old build", "connect nowhere", *STRANGERS, CURRENT, *VOID_TOKENS)
WAITS = ("grace", "token", "stale", "lock", "window", "offer")


def pairs(*, several: bool, upsets: Collection[str], cancels: bool) -> frozenset[Pair]:
    relations = ("same", "other") if several else (NO_NODE,)
    client = [*_attempts(), *_sessions()]
    client += [(each, "cancel") for each in ANYBODY] if cancels else []
    found = {Pair(where, what, relation) for where, what in client for relation in relations}
    found |= {Pair(where, what) for where, what in (*_sockets(), *_operators())}
    found |= {Pair(kind, f"wait until {side}") for kind in WAITS for side in ("before", "after")}
    found |= {Pair("promotion", "wait until after")}
    done = [*upsets, *(["restart"] if KILL in upsets else [])]
    found |= {Pair(where, what) for where in ("a socket there", "no socket") for what in done}
    return frozenset(found)


def _attempts() -> Iterator[tuple[str, str]]:
    yield from ((f"outside {mode}", "connect") for mode in ("free", "full", "draining", "closed"))
    yield from ((f"waiting here{mode}", "connect") for mode in MODES)
    yield "waiting elsewhere", "connect"
    for each in INSIDE:
        for place in (*(f"here{mode}" for mode in MODES), "elsewhere"):
            yield from ((f"{each} {place}", what) for what in ("connect", CURRENT, OFFER))
        yield from ((each, what) for what in VOID_OFFERS)
    yield from ((each, token) for each in ("outside", "waiting") for token in (CURRENT, *VOID_TOKENS))
    yield from ((each, token) for each in INSIDE for token in VOID_TOKENS)
    for each in ANYBODY:
        yield from ((each, what) for what in ("connect with old build", "connect nowhere", *STRANGERS))
    yield from ((each, "connect with old build with offer") for each in INSIDE)
    yield from ((each, f"malformed {call}") for each in (*ANYBODY, "locked") for call in MALFORMED)
    for mark in ("locked", "suspended"):
        yield from ((mark, what) for what in (*MARKED, OFFER, *VOID_OFFERS, "connect with old build with offer"))


def _sessions() -> Iterator[tuple[str, str]]:
    for each in ANYBODY:
        yield from ((each, what) for what in ("leave", "leave previous", "leave as a stranger"))
        yield from ((each, what) for what in ("attach", "attach previous", "unqueue", "unqueue as a stranger"))


def _sockets() -> Iterator[tuple[str, str]]:
    yield from (("open", what) for what in ("drop", "close", "mute", "beat"))


def _operators() -> Iterator[tuple[str, str]]:
    yield "any", "lock"
    for socket in ("", " with a socket"):
        for each in ("free", "full"):
            yield from ((each + socket, what) for what in ("drain on", "maintain on", "resize"))
        yield from ((f"draining{socket}", what) for what in ("drain off", "maintain on", "resize"))
        yield from ((f"closed{socket}", what) for what in ("drain on", "maintain off", "resize"))
        yield from ((f"closed and draining{socket}", what) for what in ("drain off", "maintain off", "resize"))
    yield from ((each, f"suspend {side}") for each in ANYBODY for side in ("on", "off"))
