"""The catalogue's durations as the model uses them."""

from dataclasses import dataclass

from holdfast.check.spectime import SpecTime


@dataclass(frozen=True)
class Spans:
    """The durations and limits that the model uses, in this run's seconds."""

    grace: float
    grace_reclaim: float
    token_ttl: float
    stale_limit: float
    stale_reclaim: float
    heartbeat: float
    rate_window: float
    rate_lock: float
    rate_failures: int
    replacement_ttl: float
    promote_never: float
    prompt_never: float
    tolerance: float
    slack: float
    # Whether the log can be seen, whether counters are exact, and whether a silent session has a grace before it ends.
    logged: bool = False
    counted: bool = False
    via_grace: bool = False

    @classmethod
    def of(cls, T: SpecTime, *, via_grace: bool, logged: bool, counted: bool) -> "Spans":
        return cls(
            grace=T.grace,
            grace_reclaim=T.grace_reclaim,
            token_ttl=T.token_ttl,
            stale_limit=T.stale_limit,
            stale_reclaim=T.stale_reclaim_grace if via_grace else T.stale_reclaim,
            heartbeat=T.heartbeat_interval,
            rate_window=T.rate_window,
            rate_lock=T.rate_lock,
            rate_failures=T.count("rate_failures"),
            replacement_ttl=T.replacement_ttl,
            promote_never=T.promote_never,
            prompt_never=T.prompt_never,
            tolerance=T.deadline_slack,
            slack=T.slack,
            logged=logged,
            counted=counted,
            via_grace=via_grace,
        )
