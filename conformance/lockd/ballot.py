"""The lease slot of a spy that means well: it grants what a sound voter grants, and no more.

A spy that granted everything would let a node do what no cluster allows, and the node would be blamed for it: two
candidates would get one term, and a leader whose lease has lapsed would have it renewed. So the slot keeps three rules
of the spec (Terms and leases; Renewal): a live lease belongs to its holder, a lapsed one is not renewed, and a term in
which somebody has led is not granted again. All else is granted; in particular a spy that has just become a member
takes the renewal of a leader that it did not vote for.
"""

import time
from collections.abc import Mapping
from typing import Any

from holdfast.conformance.lockd.wire import number


class Ballot:
    def __init__(self) -> None:
        self.holder = ""
        self.term = 0
        # The highest term in which a lease was renewed here: somebody has led in it.
        self.led = 0
        self._until = 0.0

    def live(self) -> bool:
        return bool(self.holder) and time.monotonic() < self._until

    def acquire(self, body: Mapping[str, Any]) -> str:
        """Takes a vote request; returns the code of its refusal, "" if the vote is granted."""
        candidate, term = str(body.get("candidate_id")), number(body.get("term"))
        if self.live() and self.holder != candidate:
            return "tc_term_stale" if term < self.term else "tc_lease_active"
        if term < self.led or (term == self.led and not self._holds(candidate, term)):
            return "tc_term_stale"
        self._hold(candidate, term, body)
        return ""

    def renew(self, body: Mapping[str, Any]) -> str:
        """Takes a renewal; returns the code of its refusal, "" if the lease is renewed."""
        leader, term = str(body.get("leader_id")), number(body.get("term"))
        if not self._holds(leader, term):
            if term < max(self.led, self.term):
                return "tc_term_stale"
            if self.live() or term in (self.led, self.term):  # of another holder, or of one whose lease has lapsed
                return "tc_lease_active"
        self._hold(leader, term, body)
        self.led = max(self.led, term)
        return ""

    def release(self, body: Mapping[str, Any]) -> None:
        """Frees the slot if this leader holds it; a vote that is given back leaves its term to others."""
        if (self.holder, self.term) == (str(body.get("leader_id")), number(body.get("term"))):
            self.holder, self.term = "", self.led

    def _holds(self, who: str, term: int) -> bool:
        return self.live() and (self.holder, self.term) == (who, term)

    def _hold(self, who: str, term: int, body: Mapping[str, Any]) -> None:
        self.holder, self.term = who, term
        self._until = time.monotonic() + number(body.get("ttl_ms")) / 1000
