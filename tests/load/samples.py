"""Recorded samples for tests, handed to any number of workers as the engine would."""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.check.history import Operation, Outcome
from holdfast.load.ledger import Ledger


@dataclass(frozen=True)
class Recorded:
    name: str
    due: float
    sent: float
    done: float
    outcome: str


def drawn(count: int, seed: int = 1) -> list[Recorded]:
    draw = random.Random(seed)
    dues = [each * 0.01 for each in range(count)]
    return [
        Recorded(
            "connect",
            due,
            due + 0.001,
            due + 0.001 + draw.expovariate(20),
            "success" if draw.random() < 0.9 else "queued",
        )
        for due in dues
    ]


def lines(samples: Sequence[Recorded], workers: int, parts: int = 3, *, dies: int | None = None) -> Iterator[str]:
    """Yields what a generator with so many workers writes; worker `dies` goes away before its last part."""
    yield json.dumps({"kind": "start", "at": 100.0, "workers": workers})
    for worker in range(workers):
        ledger, mine = Ledger(f"w{worker}"), samples[worker::workers]
        size = len(mine) // parts + 1
        for part in range(parts):
            for each in mine[part * size : (part + 1) * size]:
                ledger.started(each.sent - each.due)
                ledger.sample(each.name, each.due, each.sent, each.done, each.outcome)
                ledger.operation(
                    Operation(f"c{each.due}", "connect", "i", None, Outcome.OK, f"s{each.due}", each.sent, each.done)
                )
                ledger.ended(each.done)
            last = part == parts - 1
            if not (last and worker == dies):
                yield json.dumps(ledger.part(last=last))
