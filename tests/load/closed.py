"""A plain locustfile, closed as Locust's users are: ten of them, ten requests a second each."""

from locust import FastHttpUser, constant_throughput, task


class Closed(FastHttpUser):
    wait_time = constant_throughput(10)

    @task
    def connect(self) -> None:
        self.client.post("/instances/i/connect", json={}, name="connect")
