"""The catalogue's durations and limits as the model uses them."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.check.spectime import SpecTime

# Offsets into a recording by the catalogue's names for them, without the `vod_` and `_ms`; "none" sends no offset.
OFFSETS = ("first", "none", "zero_last", "before", "same", "last", "next", "new")
# Two of them in two buckets.
MAIN_OFFSETS = OFFSETS[:2]
_BUCKET = 1000


@dataclass(frozen=True)
class Spans:
    """Durations in this run's seconds.

    `linger` is how long a lease may be there after its session was seen to have ended; nothing where walks see leases,
    because then they wait for that. `renewed` is how long before its worker went away a session renewed its leases at
    the latest; where walks see leases, their life times say more.
    """

    lease_ttl: float
    slack: float
    past_ttl: float
    give_up: float
    ready_never: float
    slow: float
    long: float
    retry_after: int
    renewed: float
    linger: float
    offsets: Mapping[str, int]
    # The states in which a session runs.
    running: frozenset[str]

    @classmethod
    def of(cls, T: SpecTime, running: frozenset[str], *, sees_leases: bool) -> "Spans":
        return cls(
            lease_ttl=T.lease_ttl,
            slack=T.lease_slack,
            past_ttl=T.past_ttl,
            give_up=T.give_up,
            ready_never=max(T.never("start_ready"), T.give_up),
            slow=T.slow_start,
            long=T.long_start,
            retry_after=T.count("retry_after_seconds"),
            renewed=T.renew_every + T.lease_slack if sees_leases else 2 * T.renew_every,
            linger=0.0 if sees_leases else T.never("stop_release"),
            offsets={name: 0 if name == "none" else T.count(f"vod_{name}_ms") for name in OFFSETS},
            running=running,
        )

    def bucket(self, at: str) -> int:
        """Returns the bucket of an offset: whole seconds, and the first one where none is sent."""
        return self.offsets[at] // _BUCKET if at else 0
