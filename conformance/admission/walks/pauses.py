"""A node that stands still for a while."""

import time

from holdfast.check.finding import Inconclusive
from holdfast.check.walk.vocabulary import Seen
from holdfast.conformance.admission.client import Admission


async def stand_still(admission: Admission, node: str) -> Seen:
    """Stops the node for less than a heartbeat. A call that it answers meanwhile shows that it was not stopped."""
    T, sent = admission.T, time.monotonic()
    await admission.pause(node)
    asked = admission.beside(admission.metrics(node))
    try:
        await T.sleep(T.heartbeat_interval / 2, f"{node} to stand still")
        if asked.done():
            raise Inconclusive(f"{node} answered although it was stopped")
    finally:
        await admission.resume(node)
    await asked
    return Seen(sent, time.monotonic(), None, f"for {time.monotonic() - sent:.1f} s")
