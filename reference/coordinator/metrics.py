"""Prometheus metrics of a node."""

from prometheus_client import CollectorRegistry, Counter, Gauge, generate_latest


class Metrics:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.leader = Gauge("coordinator_leader", "1 while this node leads.", registry=self.registry)
        self.jobs = Gauge("coordinator_jobs_owned", "Jobs that this node owns.", registry=self.registry)
        self.dead = Gauge("coordinator_dead_nodes", "Nodes that this node takes for dead.", registry=self.registry)
        self.dispatched = Counter("coordinator_jobs_dispatched", "Jobs sent to workers.", registry=self.registry)
        self.events = Counter("coordinator_job_events", "Entries of job channels.", ["channel"], registry=self.registry)
        self.handoffs = Counter("coordinator_handoffs", "Published handoffs.", ["reason"], registry=self.registry)

    def render(self) -> bytes:
        return generate_latest(self.registry)
