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

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference.lockd import mutants
from holdfast.reference.lockd.parts import Parts
from holdfast.reference.lockd.settings import BadSetting, Settings
from holdfast.reference.violations import Mutant, Violations

SettingsChange = Callable[[Settings], Mapping[str, Any]]

_violations = Violations(mutants, Parts, support=frozenset({"registry"}), example="TC-ELECT-03/1")
violates, exclude = _violations.violates, _violations.exclude
all_mutants, excluded = _violations.all_mutants, _violations.excluded


def violation(
    requirement: str, number: int, sentence: str, settings: SettingsChange, *, also: tuple[str, ...] = ()
) -> None:
    """Registers a mutant that is a row: other constants.

    `also` names the other requirements that cannot but suffer, so that nobody takes their failure for a surprise.
    """

    def install(parts: Parts) -> None:
        parts.settings = lambda given: replace(given, **settings(given))

    _violations.register(Mutant(requirement, number, sentence, install, also))


def apply(name: str, parts: Parts) -> None:
    try:
        mutant = _violations.find(name)
    except LookupError as error:
        raise BadSetting(str(error)) from None
    mutant.install(parts)
