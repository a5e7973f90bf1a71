"""Mutants: the reference server with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `node --violate TC-ELECT-03/1` (or the variable VIOLATE) starts a node with it. There are two forms.

1. A row that changes settings, for constants; it gets the settings as they were given:
       violation("TC-AUTH-04", 2, "…", lambda s: {"tc_disable_auth": False})
2. A subclass of one part (`parts.py`); which one is seen from its base class:
       @violates("TC-ELECT-03", 1, "…")
       class Unanimous(Election):
           def quorum(self, n: int) -> int:
               return n

Which seam for which effect:

- who calls: `Identity.identity_from_cert`, `.member_identity`, `.authorize_client`, `.authorize_server`, `.own`
- what bundles say: `Issuer.node_id`, `.server_uris`, `.tc_client_uris`, `.sdk_client_uris`
- startup: `Boot.check_startup`, `.has_identity`, `.must_join`, `.look_around`, `.join`, `.join_once`
- leases of members: `Members.ttl`, `.normalize_endpoint`, `.key`, `.renewed`, `.payload`, `.is_active`, `.listed`
- membership loop: `Loop.interval`, `.announce_targets`, `.silent`, `.tick`, `.present`, `.fan_out`, `.further_targets`
- leave: `Leave.is_guarded`, `.must_fan_out`, `.fan_out_targets`, `.guard_headers`, `.on_leave_failed`, `.go`, `.resume`
- stop: `Leave.graceful_stop`, `.tell_all_stopping`, `.release_as_leader`
- votes: `Slot.check_acquire`, `.check_renew`, `.check_release`, `.free`, `.hold`, `.may_follow`, `.names_leader`
- candidacy: `Election.quorum`, `.next_term`, `.votes`, `.take_own_slot`, `.won`, `.stagger`, `.backoff`, `.peer_set`
- leading: `Election.renew_every`, `.renewed`, `.on_renew_failed`, `.still_leads`, `.step_down`, `.release_at`, `.holds`
- following: `Election.look`, `.observed`, `.followed`, `.may_adopt`, `.follows_soundly`, `.current_leader`, `.view`
- transactions: `Txns.decide`, `.forward`, `.to_forward`, `.passed_back`, `.check_term`, `.term_fits`, `.merge_decision`
- registry: `Registry.is_replica`, `.targets`, `.preflight`, `.replicate`, `.undo_local`, `.undo_peers`, `.takes_back`
- self-registration: `RmLoop.register_targets`, `.period`, `.next_due`, `.turn`
- certificates of calls: `Peers.certificate_for`, `.open_session`
- stores: `Island.draw_hash`, `.change`, `.open`
- wire form: `Http.refused`, `.lease`, `.identity_of`, `.announced_endpoint`, `.pair`

Every part finds the others as `self.node.<part>`. A mutant stays two to five lines; if it grows, a seam is missing.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from holdfast.reference.lockd import mutants
from holdfast.reference.lockd.parts import Parts
from holdfast.reference.lockd.settings import BadSetting, Settings

SettingsChange = Callable[[Settings], Mapping[str, Any]]
Seam = TypeVar("Seam", bound=type[Any])

_SUPPORT = {"registry"}


@dataclass(frozen=True)
class Mutant:
    requirement: str
    number: int
    sentence: str
    install: Callable[[Parts], None]
    also: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.requirement}/{self.number}"


_known: dict[str, Mutant] = {}
_excluded: dict[str, str] = {}


def _register(mutant: Mutant) -> None:
    if mutant.name in _known:
        raise ValueError(f"There are two mutants named {mutant.name}; one violation has one mutant.")
    _known[mutant.name] = mutant


def violation(
    requirement: str, number: int, sentence: str, settings: SettingsChange, *, also: tuple[str, ...] = ()
) -> None:
    """Registers a mutant that is a row: other constants.

    `also` names the other requirements that cannot but suffer, so that nobody takes their failure for a surprise.
    """

    def install(parts: Parts) -> None:
        parts.settings = lambda given: replace(given, **settings(given))

    _register(Mutant(requirement, number, sentence, install, also))


def violates(requirement: str, number: int, sentence: str, *, also: tuple[str, ...] = ()) -> Callable[[Seam], Seam]:
    """Registers a subclass of a part as a mutant."""

    def register(part: Seam) -> Seam:
        name = _part_of(part)
        _register(Mutant(requirement, number, sentence, lambda parts: setattr(parts, name, part), also))
        return part

    return register


def _part_of(part: type[Any]) -> str:
    """The name of the part that a class can stand for."""
    for each in fields(Parts):
        if isinstance(each.default, type) and issubclass(part, each.default):
            return each.name
    raise TypeError(f"{part.__name__} is no subclass of a part; see parts.py.")


def exclude(requirement: str, number: int, reason: str) -> None:
    """Registers why a violation has no mutant; the kill matrix shows the reason."""
    _excluded[f"{requirement}/{number}"] = reason


def excluded() -> Mapping[str, str]:
    all_mutants()
    return dict(_excluded)


def all_mutants() -> Mapping[str, Mutant]:
    for module in pkgutil.iter_modules(mutants.__path__):
        if module.name not in _SUPPORT:
            importlib.import_module(f"{mutants.__name__}.{module.name}")
    return dict(sorted(_known.items()))


def apply(name: str, parts: Parts) -> None:
    known = all_mutants()
    if name not in known:
        near = [each for each in known if each.startswith(name.partition("/")[0])]
        hint = f"known for this requirement: {', '.join(near)}" if near else "there is none for this requirement"
        raise BadSetting(f"No violation {name!r}: {hint}. Write it as ID/n, for example TC-ELECT-03/1.")
    known[name].install(parts)
