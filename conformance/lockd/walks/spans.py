"""The catalogue's durations as the model uses them."""

from dataclasses import dataclass

from holdfast.check.spectime import SpecTime


@dataclass(frozen=True)
class Spans:
    """Durations in this run's seconds.

    `tolerance` is by how much the target's clock and ours may differ. A change of the member list is in force for
    elections after `lag` at the latest: the document sets no time, and a node may look at its list once a tick.
    """

    leader_ttl: float
    short_ttl: float
    membership_ttl: float
    tolerance: float
    lag: float
    # By when an election that can be won is won, and a leader that has lost its quorum has stepped down.
    elected: float
    stepped_down: float

    @classmethod
    def of(cls, T: SpecTime) -> "Spans":
        return cls(
            leader_ttl=T.leader_ttl,
            short_ttl=T.leader_ttl / 2,
            membership_ttl=T.membership_ttl,
            tolerance=T.clock_slack,
            lag=T.tick_settled_max,
            elected=T.never("lease_settled_max"),
            stepped_down=T.lease_settled_max,
        )
