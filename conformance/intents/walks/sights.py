"""What the world saw, in the model's own names; sessions go by the ids that the target gave them."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.conformance.intents.walks.state import Key
from holdfast.conformance.intents.wire import Answer


@dataclass(frozen=True)
class Started:
    """The answer to a start, and what its session showed when it was decided; nothing if it had been told before."""

    answer: Answer
    shown: Answer | None = None


@dataclass(frozen=True)
class Stopped:
    """The answer to a stop of this session, and what the session showed when it had ended, or did not end.

    `ran` says whether it was seen to run between the two, and `until` when the waiting was over.
    """

    answer: Answer
    id: str
    shown: Answer | None = None
    ran: bool = False
    until: float = 0.0


@dataclass(frozen=True)
class Met:
    """What sessions showed after a change of a worker, or of a lease, when all that has to come of it had come.

    `exited` says whether a worker that was told to stop had exited in time.
    """

    shown: Mapping[str, Answer]
    exited: bool = True


@dataclass(frozen=True)
class Lease:
    """The owner of a lease, empty if there is none, and the seconds that it had left; None for no expiry."""

    owner: str
    left: float | None


@dataclass(frozen=True)
class Logged:
    """What the log of its worker tells of a session whose pipeline was started.

    `leases` are the leases that were acquired, or refreshed, before that, by kind; `states` those that it came to.
    """

    leases: tuple[str, ...]
    states: tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """An entry of the bus, and whether it names what it has to name."""

    kind: str
    id: str
    sound: bool


@dataclass(frozen=True)
class Stored:
    """What Redis holds of the walk's channels, keys and sessions.

    `mappings` are the sessions of keys by secret and key; none where the suite knows no secret. `strays` are records,
    mappings and leases that nobody asked for.
    """

    channels: Mapping[str, Lease]
    tuners: tuple[Lease, ...]
    mappings: Mapping[tuple[str, Key], str]
    records: Mapping[str, str]
    strays: tuple[str, ...]
    events: tuple[Entry, ...]
