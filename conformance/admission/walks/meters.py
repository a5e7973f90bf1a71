"""The metrics of all nodes as a walk reads them, on a deployment where nobody else is counted."""

import time
from collections import Counter
from collections.abc import Iterable, Sequence

from holdfast.check.observe import Metrics
from holdfast.check.walk.vocabulary import Seen
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.walks.counters import ATTEMPTS, DEPTH, PEAK, ROWS, SESSIONS, Scrape
from holdfast.conformance.admission.walks.events import Line


class Meters:
    """Each node counts only what it did itself, and counts from zero when it has begun anew."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._read: dict[str, Counter[Line]] = {}

    async def read(self, nodes: Iterable[str]) -> None:
        """Notes what these nodes show now: a rise is counted from here."""
        for node in nodes:
            self._read[node] = _counted(await self._admission.metrics(node))

    async def scrape(self, nodes: Sequence[str]) -> Seen:
        """Returns what these nodes show, and what has risen since the last scrape."""
        sent, risen, pages = time.monotonic(), list[Line](), list[Metrics]()
        for node in nodes:
            pages.append(await self._admission.metrics(node))
            now = _counted(pages[-1])
            risen += (now - self._read[node]).elements()
            self._read[node] = now
        sessions, waiting = ([int(page.total(name)) for page in pages] for name in (SESSIONS, DEPTH))
        peak = max(int(page.total(PEAK)) for page in pages)
        what = Scrape(tuple(sessions), tuple(waiting), peak, tuple(sorted(risen)))
        rise = ", ".join(" ".join(filter(None, line)) for line in what.risen) or "nothing"
        text = f"{_list(sessions)} sessions, {_list(waiting)} waiting, peak {peak}; risen: {rise}"
        return Seen(sent, time.monotonic(), what, text)


def _counted(page: Metrics) -> Counter[Line]:
    counted = Counter({(name, "", ""): round(page.total(name)) for name in ROWS if name != ATTEMPTS})
    outcomes = page.series(ATTEMPTS, "reason")
    return counted + Counter({(ATTEMPTS, "", outcome): round(value) for outcome, value in outcomes.items()})


def _list(numbers: Iterable[int]) -> str:
    return " and ".join(map(str, numbers))
