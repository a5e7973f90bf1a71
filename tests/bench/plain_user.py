"""A plain locustfile: FastHttpUser as its documentation has it, at the same rate. Writes what it cost to a file."""

import json
import os
import time
from pathlib import Path
from typing import Any

from locust import FastHttpUser, constant_throughput, events, task

from tests.bench.sent import BODY

_BEGAN: dict[str, float] = {}


class Plain(FastHttpUser):
    wait_time = constant_throughput(float(os.environ["HOLDFAST_BENCH_RATE"]))

    @task
    def connect(self) -> None:
        reply: Any = self.client.post(
            "/instances/i/connect", json=BODY, headers={"Authorization": "Bearer x"}, name="connect"
        )
        assert reply.json()["outcome"] == "success"


def begin(**_said: Any) -> None:
    _BEGAN["cpu"] = time.process_time()


def end(environment: Any, **_said: Any) -> None:
    told = {"cpu": time.process_time() - _BEGAN["cpu"], "requests": environment.stats.total.num_requests}
    Path(os.environ["HOLDFAST_BENCH_OUT"]).write_text(json.dumps(told), "utf-8")


events.test_start.add_listener(begin)  # type: ignore[no-untyped-call]  # Locust's
events.test_stop.add_listener(end)  # type: ignore[no-untyped-call]  # Locust's
