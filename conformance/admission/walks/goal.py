"""Every pair that a walk can reach, written down: what is missing here would not be missed by anybody."""

from collections.abc import Iterator

from holdfast.check.walk.vocabulary import NO_NODE, Pair

INSIDE = ("new", "promoted", "open", "silent", "grace", "expired")
LIVE = ("new", "promoted", "open", "silent")
ANYBODY = ("outside", "waiting", *INSIDE)
TOKENS = ("connect with current token", "connect with previous token", "connect with unknown token")
SIBLING = "connect with of sibling token"
OFFERS = ("connect with offer", "connect with previous offer", "connect with unknown offer")
STRANGE = ("connect as a stranger", "connect with old build")
WAITS = ("grace", "token", "stale", "lock", "window", "offer")


def pairs(*, several: bool, kills: bool, cancels: bool) -> frozenset[Pair]:
    relations = ("same", "other") if several else (NO_NODE,)
    client = [*_attempts(), *_sessions()]
    client += [(each, "cancel") for each in LIVE] if cancels else []
    found = {Pair(where, what, relation) for where, what in client for relation in relations}
    found |= {Pair(where, what) for where, what in (*_sockets(), *_operators())}
    found |= {Pair(kind, f"wait until {side}") for kind in WAITS for side in ("before", "after")}
    if kills:
        found |= {Pair(where, what) for where in ("a socket there", "no socket") for what in ("kill", "restart")}
    return frozenset(found)


def _attempts() -> Iterator[tuple[str, str]]:
    for mode in ("free", "full", "draining", "closed"):
        yield f"outside {mode}", "connect"
    for mode in ("", " draining", " closed"):
        yield f"waiting here{mode}", "connect"
        for each in ("new", "open", "grace"):
            yield f"{each} here{mode}", "connect"
            yield f"{each} here{mode}", TOKENS[0]
        yield f"open here{mode}", OFFERS[0]
    yield "waiting elsewhere", "connect"
    for each in ("silent", "expired", "promoted"):
        yield f"{each} here", "connect"
        yield f"{each} here", TOKENS[0]
    for each in ("new", "open", "grace"):
        yield f"{each} elsewhere", "connect"
        yield f"{each} elsewhere", TOKENS[0]
        yield f"{each} here", TOKENS[1]
        yield f"{each} here", TOKENS[2]
        yield f"{each} here", SIBLING
        yield f"{each} here", OFFERS[0]
        yield f"{each} here", OFFERS[2]
    for each in ("outside", "waiting"):
        yield from ((each, token) for token in (*TOKENS[:1], TOKENS[2], SIBLING))
    yield from ((each, what) for each in ("outside", "waiting", "new", "open", "grace") for what in STRANGE)
    yield from ((each, "connect nowhere") for each in ("outside", "waiting", "new", "open"))
    for mark in ("locked", "suspended"):
        yield from ((mark, what) for what in ("connect", "connect with old build", TOKENS[0]))


def _sessions() -> Iterator[tuple[str, str]]:
    yield from ((each, "leave") for each in (*LIVE, "grace", "outside"))
    yield from ((each, "leave previous") for each in ("outside", "new", "open"))
    yield from ((each, "leave as a stranger") for each in ("new", "open", "grace"))
    yield from ((each, "attach") for each in (*LIVE, "grace", "outside"))
    yield from ((each, "attach previous") for each in ("outside", "new", "open"))
    yield from ((each, "unqueue") for each in ("outside", "waiting", "open"))
    yield "waiting", "unqueue as a stranger"


def _sockets() -> Iterator[tuple[str, str]]:
    yield from (("open", what) for what in ("drop", "close", "mute", "beat"))


def _operators() -> Iterator[tuple[str, str]]:
    yield "any", "lock"
    for each in ("free", "full"):
        yield from ((each, what) for what in ("drain on", "maintain on", "resize"))
    yield from (("draining", what) for what in ("drain off", "maintain on", "resize"))
    yield from (("closed", what) for what in ("drain on", "maintain off", "resize"))
    yield from (("closed and draining", what) for what in ("drain off", "maintain off", "resize"))
    for each in ("outside", "waiting", "new", "open", "grace"):
        yield from ((each, f"suspend {side}") for side in ("on", "off"))
