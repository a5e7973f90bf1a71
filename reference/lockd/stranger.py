"""The lockd node as a stranger: dialects on every connection, terms with gaps, answers late within the lease's bounds.

A term only has to be above every term that the candidate knows (spec: Terms and leases), so it may jump. An answer may
be late by a small part of the lease: far less than a round of votes waits for it, and less than every tolerance with
which an expiry is compared.
"""

import random
from collections.abc import Sequence

from holdfast.reference.lockd.components import Components
from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.settings import Settings
from holdfast.reference.shared.stranger.voice import Stranger

LATE_SHARE = 0.03


def _other_status(_path: str, status: int) -> int:
    """A body that is too large may be called so, or just a bad request: the contract has both for every such call."""
    return 400 if status == 413 else status


def estrange(components: Components, settings: Settings, name: str) -> Stranger:
    """Makes the components those of a stranger with this name, `SEED:NODE`."""
    stranger = Stranger(name, lambda _path: LATE_SHARE * settings.leader_ttl, _other_status)
    components.speech = stranger
    components.election = _leaping(components.election, stranger.traits.gap, random.Random(f"{name} leaps"))
    return stranger


def _leaping(election: type[Election], gap: int, draw: random.Random) -> type[Election]:
    class Leaping(election):  # type: ignore[misc, valid-type]  # whichever class the node has, a mutant's too
        def next_term(self, own: int, reported: Sequence[int]) -> int:
            return super().next_term(own, reported) + draw.randint(0, gap)  # type: ignore[no-any-return]  # as above

    return Leaping
