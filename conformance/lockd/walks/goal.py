"""Every pair that a walk can reach, written down: what is missing here, nobody would miss.

Left out are pairs that the model never draws, because the document does not say what comes of them: a node that has
left is asked for nothing but votes and decisions, and for nothing at all once its list is empty.
"""

from collections.abc import Collection, Iterator

from holdfast.check.walk.vocabulary import Pair
from holdfast.conformance.lockd.walks.commands import LEASE_CALLS, MALFORMED, SERVER_ROUTES, TERMS
from holdfast.conformance.lockd.walks.state import GONE, PROBE, WRITES

WHOSE = ("mine", "of another")
SLOTS = (
    "leading",
    "leaderless free",
    *(f"{leading} {whose}" for leading in ("leaderless", "following", "cut-off") for whose in WHOSE),
)
LEADERSHIPS = ("leading", "leaderless", "following", "cut-off")
RECORDS = ("fresh", "decided", "contradicted")
LISTINGS = ("listed", "unlisted", "listed elsewhere")
REFUSED = tuple(f"refused{by}" for by in ("", " by the first", " by the last"))
PEERS = ("alone", "all well", *REFUSED, "unprobed", "unreachable")
WAITS = ("membership", "lease", "learned lease", "vote")


def pairs(upsets: Collection[str] = ()) -> frozenset[Pair]:
    found = [*_members(), *_leases(), *_registry(), *_transactions(), *_others()]
    for upset in upsets:
        found += [(leading, upset) for leading in (*LEADERSHIPS, "outside", "adrift")]
    return frozenset(Pair(situation, what) for situation, what in found)


def _members() -> Iterator[tuple[str, str]]:
    for listing in LISTINGS:
        yield from ((listing, what) for what in ("announce", "announce elsewhere", "leave", "leave marked"))
    yield from ((listing, "leave naming another") for listing in LISTINGS[:2])
    yield "leading", "depose"
    ails = ("well", WRITES, PROBE, GONE)
    for word in ("listed", "unlisted", "following", "cut-off"):
        had = [ail for ail in ails if (ail == GONE) == (word == "cut-off") or word.endswith("listed")]
        yield from ((f"{word} {ail}", f"trouble {how}") for ail in had for how in ails[1:] if how != ail)
        yield from ((f"{word} {ail}", "trouble over") for ail in had if ail != "well")


def _leases() -> Iterator[tuple[str, str]]:
    for slot in SLOTS:
        yield from ((slot, f"{name} {term}") for name in LEASE_CALLS for term in TERMS)
        yield slot, "acquire for a short time above"
        yield slot, "renew for a short time current"
    yield from (("outside", f"acquire{short} above") for short in ("", " for a short time"))


def _registry() -> Iterator[tuple[str, str]]:
    for name in ("register", "unregister"):
        for there in ("present", "absent"):
            yield from ((f"{there} {peers}", name) for peers in PEERS)
            yield from ((f"{there} {peers}", f"{name} as replica") for peers in ("alone", "with peers"))


def _transactions() -> Iterator[tuple[str, str]]:
    for leading in LEADERSHIPS:
        terms = ("without term", *TERMS)
        yield from ((f"{leading} {record}", f"apply {term}") for record in RECORDS for term in terms)
    for leading in (*LEADERSHIPS, "outside"):
        yield from ((f"{leading} {record}", what) for record in RECORDS for what in ("decide", "decide for an RM"))
        yield from ((f"{leading} {record}", "replay") for record in RECORDS[:2])


def _others() -> Iterator[tuple[str, str]]:
    yield from ((leading, f"votes {side}") for leading in (*LEADERSHIPS, "outside", "adrift") for side in ("on", "off"))
    yield from ((leading, "report") for leading in (*LEADERSHIPS[1:], "outside"))
    for leading in (*LEADERSHIPS, "leading shaky"):
        yield from ((f"{leading} {peers}", "exit") for peers in ("alone", "with peers"))
    yield from ((left, "return") for left in ("outside", "adrift"))
    yield from (("any", f"intrude {route}") for route in SERVER_ROUTES)
    yield from (("any", f"malformed {call}") for call in MALFORMED)
    yield from ((kind, f"wait until {side}") for kind in WAITS for side in ("before", "after"))
    # What has freed the slot is in the step before: only now and then is a node still between two attempts when an
    # election is due, and after which of them is the node's own affair.
    yield from ((kind, "wait until after") for kind in ("election", "step-down"))
