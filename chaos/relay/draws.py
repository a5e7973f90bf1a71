"""Random numbers of the relay: the same for the same seed, whatever else goes on."""

import random


class Generators(dict[str, random.Random]):
    """A generator for each direction of one connection or flow, so that draws do not depend on what others do."""

    def __init__(self, seed: str, number: int) -> None:
        super().__init__()
        self._of = f"{seed} {number}"

    def __missing__(self, stream: str) -> random.Random:
        self[stream] = random.Random(f"{self._of} {stream}")
        return self[stream]
