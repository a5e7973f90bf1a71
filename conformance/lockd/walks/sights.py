"""What the world saw, in the model's own names: peers are `s1`, `s2` and `x`, the node under test is `node`."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.conformance.lockd.wire import Answer


@dataclass(frozen=True)
class Asked:
    """A lease call. `named` says whether a grant names the candidate, its endpoint and its term."""

    answer: Answer
    term: int
    ttl: float = 0.0
    named: bool = True


@dataclass(frozen=True)
class Shown:
    """What the node says about the leader. `who` is empty if its record is no valid one; `record` is whom it names."""

    answer: Answer
    who: str = ""
    record: str = ""
    term: int = 0
    # Whether id and endpoint belong together, and the seconds until the lease ends.
    sound: bool = True
    left: float = 0.0


@dataclass(frozen=True)
class Listed:
    """A member list by names; `tidy` says whether it was normalised, sorted and without duplicates."""

    answer: Answer
    names: tuple[str, ...]
    tidy: bool = True
    # For a leave of the node itself: how many marked leaves under its certificate each spy got.
    leaves: Mapping[str, int] = field(default_factory=dict)
    # And in which terms it released its lease there.
    releases: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    # Whether its process ended when it was told to stop.
    ended: bool = True


@dataclass(frozen=True)
class Changed:
    """A registry change: whether each spy had the pair before and has it after, and the replicas that it got."""

    answer: Answer
    endpoints: tuple[str, ...]
    before: Mapping[str, bool]
    after: Mapping[str, bool]
    replicas: Mapping[str, int]
    marked: bool = True


@dataclass(frozen=True)
class Registered:
    """The registry as far as the walk is concerned; `updated` is the time of each backend's entry."""

    answer: Answer
    pairs: tuple[tuple[str, str], ...]
    updated: Mapping[str, int]


@dataclass(frozen=True)
class Decided:
    """A decision or an apply with this term; `forwarded` says how often each spy got the decision.

    `applied` are the terms of the applies that the decision has led to at the RM that a spy plays.
    """

    answer: Answer
    term: int = 0
    leader: str = ""
    forwarded: Mapping[str, int] = field(default_factory=dict)
    applied: tuple[int, ...] = ()


@dataclass(frozen=True, order=True)
class Saying:
    """A call that the node made of its own accord: whether it names the node in every field, and the TTL in it."""

    what: str
    itself: bool
    ttl: float = 0.0


@dataclass(frozen=True)
class Heard:
    """What spies got since the last look: leaves, replicas of our pairs, and when and at which term vote requests.

    `said` is what the node said about itself, each once.
    """

    leaves: int
    replicas: int
    candidacies: tuple[tuple[float, int], ...]
    said: tuple[Saying, ...] = ()
