"""The components of a node. A mutant replaces one field: one component, the settings, or bodies of Lua functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from holdfast.reference.admission.admin import Admin
from holdfast.reference.admission.attempts import Attempts
from holdfast.reference.admission.events import Events
from holdfast.reference.admission.follow_ups import FollowUps
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.identity import Identity
from holdfast.reference.admission.janitor import Janitor
from holdfast.reference.admission.kicks import Kicks
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.promoter import Promoter
from holdfast.reference.admission.recovery import Recovery
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.scripts import Scripts
from holdfast.reference.admission.settings import Settings
from holdfast.reference.admission.sockets import Sockets
from holdfast.reference.admission.store import Store
from holdfast.reference.admission.watches import Watches
from holdfast.reference.shared.redislink import RedisLink
from holdfast.reference.shared.settings import as_given
from holdfast.reference.shared.speech import PLAIN, Speech


@dataclass(kw_only=True)
class Components:
    settings: Callable[[Settings], Settings] = as_given
    lua: Mapping[str, str] = field(default_factory=dict)
    rules: type[Rules] = Rules
    identity: type[Identity] = Identity
    scripts: type[Scripts] = Scripts
    link: type[RedisLink] = RedisLink
    store: type[Store] = Store
    events: type[Events] = Events
    metrics: type[Metrics] = Metrics
    kicks: type[Kicks] = Kicks
    recovery: type[Recovery] = Recovery
    attempts: type[Attempts] = Attempts
    promoter: type[Promoter] = Promoter
    janitor: type[Janitor] = Janitor
    sockets: type[Sockets] = Sockets
    watches: type[Watches] = Watches
    follow_ups: type[FollowUps] = FollowUps
    admin: type[Admin] = Admin
    http: type[Http] = Http
    speech: Speech = PLAIN
