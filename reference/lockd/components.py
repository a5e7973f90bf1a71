"""The components of a node. A mutant replaces exactly one of them, or changes the settings."""

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.reference.lockd.boot import Boot
from holdfast.reference.lockd.clock import Clock
from holdfast.reference.lockd.election import Election
from holdfast.reference.lockd.events import Events
from holdfast.reference.lockd.http import Http
from holdfast.reference.lockd.identity import Identity
from holdfast.reference.lockd.issue import Issuer
from holdfast.reference.lockd.leave import Leave
from holdfast.reference.lockd.loop import Loop
from holdfast.reference.lockd.members import Members
from holdfast.reference.lockd.peers import Peers
from holdfast.reference.lockd.registry import Registry
from holdfast.reference.lockd.rmloop import RmLoop
from holdfast.reference.lockd.settings import Settings
from holdfast.reference.lockd.slot import Slot
from holdfast.reference.lockd.store import Island
from holdfast.reference.lockd.txns import Txns
from holdfast.reference.shared.settings import as_given
from holdfast.reference.shared.speech import PLAIN, Speech

MUTANTS = "holdfast.reference.lockd.mutants"


@dataclass(kw_only=True)
class Components:
    settings: Callable[[Settings], Settings] = as_given
    clock: type[Clock] = Clock
    events: type[Events] = Events
    identity: type[Identity] = Identity
    island: type[Island] = Island
    boot: type[Boot] = Boot
    members: type[Members] = Members
    loop: type[Loop] = Loop
    leave: type[Leave] = Leave
    slot: type[Slot] = Slot
    election: type[Election] = Election
    registry: type[Registry] = Registry
    rmloop: type[RmLoop] = RmLoop
    txns: type[Txns] = Txns
    peers: type[Peers] = Peers
    http: type[Http] = Http
    issuer: type[Issuer] = Issuer
    speech: Speech = PLAIN
