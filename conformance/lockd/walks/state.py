"""What one node holds, as the spec has it: members, its lease slot, its own leadership, the RM registry, decisions.

A state is a value: every change makes another one. Times are intervals on our clock.

The node is alone among peers that the walk plays. Two of them, s1 and s2, are spies that serve all routes; `x` is an
identity without a server, which announces an endpoint where nobody listens, or that of s1. So who votes is in our
hands, and whether the node has a *quorum* follows from the list and from the votes. What does not follow is when the
node notices. After a change the quorum is *unsettled* for a while, in which the node may act on the old list or on the
new one, and its leadership is *shaky* until every lease from before has run out.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

from holdfast.conformance.shared.walks import Span, with_entry

SPIES = ("s1", "s2")
STRANGER = "x"
PEERS = (*SPIES, STRANGER)
NODE = "node"
# The second endpoint is that of a spy, which is then an RM as well; nobody listens at the first.
BACKENDS, ENDPOINTS = ("h1", "h2"), ("e1", "s1")
# Transactions that are decided at the node as coordinator, and others that are applied at it as RM. The last of the
# former has a participant of this backend.
DECIDED, APPLIED = ("t1", "t2", "t3"), ("a1", "a2")
FAR, ISLAND, RM = DECIDED[-1], BACKENDS[0], ENDPOINTS[-1]
# What ails a spy: it refuses registry writes, it fails the probe, or its port is closed.
WRITES, PROBE, GONE = "writes", "probe", "gone"


BEFORE = Span(0.0, 0.0)


class Member(NamedTuple):
    """A membership lease: the endpoint that was announced last, and when."""

    at: str
    since: Span


class Slot(NamedTuple):
    """A live lease of a spy. It is a vote until it is renewed; then its holder leads, `led` since that moment.

    A leader that was `learned` from a peer leads too; what such a record means for votes is open.
    """

    holder: str
    term: int
    since: Span
    ttl: float
    led: float = 0.0
    learned: bool = False


class Report(NamedTuple):
    """A spy says that it leads, in this term, with a lease that begins at `since`."""

    who: str
    term: int
    since: Span


class Decision(NamedTuple):
    state: str
    term: int


@dataclass(frozen=True)
class State:
    """`lead` is the term in which the node leads: 0 if it was not told yet, None if it does not lead.

    `was` is the term in which it led last: one whose lease has lapsed may be between two attempts to renew, and go on.
    `floor` is the highest term in which somebody has led, `voted` the highest of votes that came to nothing. `free` is
    since when nobody holds the slot. `blocked` counts refusals, since a moment, that only the node's own candidacies
    explain.
    """

    members: tuple[tuple[str, Member], ...] = ()
    here: bool = True
    refusing: frozenset[str] = frozenset()
    troubles: tuple[tuple[str, str], ...] = ()
    lead: int | None = None
    was: int = 0
    slot: Slot | None = None
    report: Report | None = None
    # A peer that every candidacy asks, and the term that it goes on to report.
    asked: tuple[str, int] = ("", 0)
    free: Span = BEFORE
    floor: int = 0
    voted: int = 0
    # By when the present quorum is in force, and by when the present member list is.
    settles: float = 0.0
    listed_by: float = 0.0
    unsettled: bool = False
    shaky: bool = False
    blocked: tuple[int, float] = (0, 0.0)
    registry: frozenset[tuple[str, str]] = frozenset()
    # By backend: the time that its entry showed last; none if it may have moved since.
    updated: tuple[tuple[str, int], ...] = ()
    txns: tuple[tuple[str, Decision], ...] = ()

    def member(self, who: str) -> Member | None:
        return dict(self.members).get(who)

    @property
    def others(self) -> tuple[str, ...]:
        """The endpoints of the list but the node's own, each once."""
        return tuple(sorted({member.at for _, member in self.members}))

    @property
    def listed(self) -> tuple[str, ...]:
        return tuple(sorted([*self.others, *([NODE] if self.here else [])]))

    @property
    def outside(self) -> bool:
        """Whether the list has members, but not the node: then its election is off."""
        return not self.here and bool(self.members)

    @property
    def adrift(self) -> bool:
        """Whether the node has left and its list is empty; what its election does then is open."""
        return not self.here and not self.members

    def trouble(self, who: str) -> str:
        """Returns what ails who serves this endpoint; nobody serves that of the stranger."""
        return GONE if who == STRANGER else dict(self.troubles).get(who, "")

    def grants(self, who: str) -> bool:
        return who in SPIES and who not in self.refusing and self.trouble(who) != GONE

    @property
    def quorum(self) -> bool:
        """Whether the node and those of its peers that grant are a majority of the list."""
        granted = 1 + sum(self.grants(each) for each in self.others)
        return self.here and granted >= (len(self.others) + 1) // 2 + 1

    @property
    def reaches_rm(self) -> bool:
        """Whether an RM of the far transaction is registered and serves."""
        return (ISLAND, RM) in self.registry and self.trouble(RM) != GONE

    def decision(self, txn: str) -> Decision | None:
        return dict(self.txns).get(txn)

    def with_member(self, who: str, member: Member | None) -> "State":
        after = replace(self, members=with_entry(self.members, who, member))
        return after if self.asked[0] in after.others else replace(after, asked=("", 0))

    def with_refusing(self, spies: frozenset[str]) -> "State":
        return replace(self, refusing=spies)

    def with_trouble(self, who: str, how: str) -> "State":
        asked = ("", 0) if self.asked[0] == who else self.asked
        return replace(self, troubles=with_entry(self.troubles, who, how or None), asked=asked)

    def with_decision(self, txn: str, decision: Decision) -> "State":
        return replace(self, txns=with_entry(self.txns, txn, decision))

    def moved(self, backend: str) -> "State":
        """Returns the state in which the time of this backend's entry is not known any more."""
        return replace(self, updated=tuple(each for each in self.updated if each[0] != backend))

    def lapsed(self, at: Span) -> "State":
        """Returns the state after the lease in the slot has ended, by itself or by a release."""
        if self.slot is None:
            return self
        voted = self.voted if self.slot.led else max(self.voted, self.slot.term)
        return replace(self, slot=None, free=at, voted=voted)

    def after(self, before: "State", at: Span, lag: float) -> "State":
        """Returns this state with the notes on its quorum, which was another before; the list changes with a lag."""
        listed_by = at.hi + lag if self.listed != before.listed else before.listed_by
        pending = before.unsettled or before.listed_by > at.lo
        if self.quorum == before.quorum and not pending:
            return replace(self, listed_by=listed_by)
        settles = max(at.hi, listed_by, before.settles if before.unsettled else 0.0)
        return replace(self, listed_by=listed_by, settles=settles, unsettled=True, shaky=True)
