"""The components of API and worker. A mutant replaces one field, and both processes are started with it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.reference.intents.acceptance import Acceptance
from holdfast.reference.intents.bus import Bus
from holdfast.reference.intents.clock import Clock
from holdfast.reference.intents.http import Http
from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.languard import LanGuard
from holdfast.reference.intents.leases import ApiLeases, Leases
from holdfast.reference.intents.metrics import Metrics
from holdfast.reference.intents.orchestrator import Orchestrator
from holdfast.reference.intents.payloads import Payloads
from holdfast.reference.intents.pipelines import Pipelines
from holdfast.reference.intents.polls import Polls
from holdfast.reference.intents.principals import Principals
from holdfast.reference.intents.runner import Runner
from holdfast.reference.intents.scripts import Scripts
from holdfast.reference.intents.settings import Settings
from holdfast.reference.intents.startup import Startup
from holdfast.reference.intents.store import Store
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.redislink import RedisLink
from holdfast.reference.shared.settings import as_given
from holdfast.reference.shared.speech import PLAIN, Speech


@dataclass(kw_only=True)
class Components:
    settings: Callable[[Settings], Settings] = as_given
    lua: Mapping[str, str] = field(default_factory=dict)
    scripts: type[Scripts] = Scripts
    events: type[JsonLog] = JsonLog
    clock: type[Clock] = Clock
    link: type[RedisLink] = RedisLink
    store: type[Store] = Store
    metrics: type[Metrics] = Metrics
    guard: type[LanGuard] = LanGuard
    principals: type[Principals] = Principals
    payloads: type[Payloads] = Payloads
    keys: type[IdemKeys] = IdemKeys
    api_leases: type[ApiLeases] = ApiLeases
    leases: type[Leases] = Leases
    acceptance: type[Acceptance] = Acceptance
    polls: type[Polls] = Polls
    http: type[Http] = Http
    bus: type[Bus] = Bus
    pipelines: type[Pipelines] = Pipelines
    runner: type[Runner] = Runner
    orchestrator: type[Orchestrator] = Orchestrator
    startup: type[Startup] = Startup
    speech: Speech = PLAIN
