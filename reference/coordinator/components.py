"""The components of a node. A mutant replaces one field."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.reference.coordinator.assignments import AssignmentConsumer
from holdfast.reference.coordinator.clock import Clock
from holdfast.reference.coordinator.competing import CompetingQueue
from holdfast.reference.coordinator.drain import CoordinatorDrainService, Exit
from holdfast.reference.coordinator.duties import CancelPublisher, Dispatcher, Scheduler, TimeoutMonitor
from holdfast.reference.coordinator.handoff import JobHandoffAckListener, JobHandoffPublisher, JobHandoffSubscriber
from holdfast.reference.coordinator.health import CoordinatorHealthMonitor, WorkerMonitor
from holdfast.reference.coordinator.heartbeat import CoordinatorHeartbeatService
from holdfast.reference.coordinator.http import Http
from holdfast.reference.coordinator.ids import Ids
from holdfast.reference.coordinator.job_events import JobEvents
from holdfast.reference.coordinator.lease import Challenge, Lease
from holdfast.reference.coordinator.metrics import Metrics
from holdfast.reference.coordinator.names import Names
from holdfast.reference.coordinator.orphans import OrphanJobDetector
from holdfast.reference.coordinator.ownership import JobOwnershipStore
from holdfast.reference.coordinator.rebalancer import Rebalancer
from holdfast.reference.coordinator.registry import Registry
from holdfast.reference.coordinator.scripts import Scripts
from holdfast.reference.coordinator.settings import Settings
from holdfast.reference.coordinator.startup import Startup
from holdfast.reference.coordinator.store import Store
from holdfast.reference.coordinator.topics import PublishedTopics, Topics
from holdfast.reference.coordinator.transport import Transport
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.redislink import RedisLink


def as_given(settings: Settings) -> Settings:
    return settings


@dataclass(kw_only=True)
class Components:
    settings: Callable[[Settings], Settings] = as_given
    lua: Mapping[str, str] = field(default_factory=dict)
    scripts: type[Scripts] = Scripts
    events: type[JsonLog] = JsonLog
    clock: type[Clock] = Clock
    exit: type[Exit] = Exit
    ids: type[Ids] = Ids
    names: type[Names] = Names
    link: type[RedisLink] = RedisLink
    store: type[Store] = Store
    metrics: type[Metrics] = Metrics
    transport: type[Transport] = Transport
    queue: type[CompetingQueue] = CompetingQueue
    topics: type[Topics] = Topics
    published_topics: type[PublishedTopics] = PublishedTopics
    lease: type[Lease] = Lease
    challenge: type[Challenge] = Challenge
    scheduler: type[Scheduler] = Scheduler
    dispatcher: type[Dispatcher] = Dispatcher
    cancels: type[CancelPublisher] = CancelPublisher
    timeouts: type[TimeoutMonitor] = TimeoutMonitor
    orphans: type[OrphanJobDetector] = OrphanJobDetector
    ownership: type[JobOwnershipStore] = JobOwnershipStore
    registry: type[Registry] = Registry
    assignments: type[AssignmentConsumer] = AssignmentConsumer
    job_events: type[JobEvents] = JobEvents
    heartbeat: type[CoordinatorHeartbeatService] = CoordinatorHeartbeatService
    health: type[CoordinatorHealthMonitor] = CoordinatorHealthMonitor
    workers: type[WorkerMonitor] = WorkerMonitor
    publisher: type[JobHandoffPublisher] = JobHandoffPublisher
    acks: type[JobHandoffAckListener] = JobHandoffAckListener
    subscriber: type[JobHandoffSubscriber] = JobHandoffSubscriber
    rebalancer: type[Rebalancer] = Rebalancer
    drain: type[CoordinatorDrainService] = CoordinatorDrainService
    startup: type[Startup] = Startup
    http: type[Http] = Http
