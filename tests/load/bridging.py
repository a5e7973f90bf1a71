"""Run by a test in a process of its own, in which gevent has patched everything, as in Locust; prints JSON."""

# ruff: noqa: E402, T201 - gevent patches first; it reports on its standard output

from gevent import monkey

monkey.patch_all()

import json
import sys
import time

import gevent
from gevent.pool import Pool

from holdfast.load.bridge import Bridge, BridgeError


def main(url: str) -> None:
    with Bridge("tests.load.echo:Echo") as bridge:
        ticks = [0]
        gevent.spawn(_tick, ticks)
        began = time.monotonic()
        together = Pool().map(lambda n: bridge.call("say", url=url, text=f"word {n}"), range(200))
        slept = Pool().map(lambda _: bridge.call("sleep", seconds=0.5), range(50))
        took = time.monotonic() - began
        try:
            bridge.call("breaks")
        except BridgeError as error:
            broke = str(error)
        waiting = gevent.spawn(bridge.call, "sleep", seconds=3600)
        gevent.sleep(0.1)
    waiting.join(5)
    print(
        json.dumps(
            {
                "heard": [each["heard"] for each in together],
                "in order": all(began <= each["sent"] <= each["received"] for each in together),
                "slept": len(slept),
                "took": took,
                "ticks": ticks[0],
                "broke": broke,
                "left waiting": repr(waiting.exception),
            }
        )
    )


def _tick(ticks: list[int]) -> None:
    while True:
        gevent.sleep(0.01)
        ticks[0] += 1


if __name__ == "__main__":
    main(sys.argv[1])
