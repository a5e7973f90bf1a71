"""Mutants: the reference server with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `node --violate TC-ELECT-03/1` (or the variable VIOLATE) starts a node with it. There are two forms.

1. A row that changes settings, for constants; it gets the settings as they were given:
       violation("TC-AUTH-04", 2, "…", lambda s: {"tc_disable_auth": False})
2. A subclass of one component (`components.py`); its base class says which:
       @violates("TC-ELECT-03", 1, "…")
       class Unanimous(Election):
           def quorum(self, n: int) -> int:
               return n

A mutant of a row is in the module that is named like the checks of that row: TC-LEAVE-07 is checked in
`conformance/lockd/test_leave_outcome.py`, so its mutants are in `leave_outcome.py`.

Which seam for which effect:

- who calls: `Identity.identity_from_cert`, `.member_identity`, `.authorize_client`, `.authorize_server`, `.own`,
  `.listener`
- what bundles say: `Issuer.node_id`, `.server_uris`, `.tc_client_uris`, `.sdk_client_uris`
- startup: `Boot.check_startup`, `.must_join`, `.look_around`, `.join`, `.join_once`
- leases of members: `Members.normalize_endpoint`, `.namespace`, `.key`, `.renewed`, `.payload`, `.announce`, `.remove`
- list of members: `Members.is_active`, `.leases`, `.listed`, `.active`
- membership loop: `Loop.interval`, `.tick`, `.silent`, `.present`, `.announce_here`, `.announce_targets`, `.fan_out`,
  `.further_targets`, `.announce_failed`
- leave, whose and to whom: `Leave.is_guarded`, `.guard_headers`, `.remove_other`, `.fan_out_targets`, `.fan_out_leave`
- leave, its outcome: `Leave.leave_everywhere`, `.on_leave_failed`, `.go`, `.release_as_leader`, `.pause`, `.resume`
- stop: `Leave.graceful_stop`, `.fan_out_stop`
- votes of the own slot: `Slot.check_acquire`, `.check_renew`, `.check_release`, `.free`, `.follow`, `.names_leader`
- peer set and quorum: `Election.peer_set`, `.refresh`, `.quorum`, `.won`, `.count`, `.identity`
- candidacy: `Election.step`, `.seek`, `.next_term`, `.votes`, `.take_own_slot`, `.own_vote`, `.stagger`, `.backoff`
- leading: `Election.lead`, `.holds`, `.still_leads`, `.renew_every`, `.renewed`, `.on_renew_failed`, `.must_give_way`,
  `.step_down`, `.release_at`
- following: `Election.look`, `.observed`, `.current_leader`
- decisions: `Txns.decide`, `.known_leader`, `.decide_here`, `.term_for`, `.merge_decision`
- forwarding: `Txns.forward`, `.to_forward`, `.passed_back`, `.not_leader`
- applying: `Txns.apply`, `.check_term`, `.term_fits`, `.to_apply`
- registry, the change: `Registry.requested`, `.change_everywhere`, `.edited`, `.with_change`, `.write`, `.load`
- registry, its replication: `Registry.is_replica`, `.replica_headers`, `.targets`, `.preflight`, `.replicate`,
  `.refuse_if`, `.takes_back`, `.undo_local`, `.undo_peers`
- self-registration: `RmLoop.register_targets`, `.next_due`
- certificates of calls: `Peers.certificate_for`, `.open_session`
- stores: `Island.draw_hash`, `.open`
- wire form: `Http.route`, `.refused`, `.identity_of`, `.announced_endpoint`, `.pair`, `.term_and_ttl`, `.acquire`,
  `.leave`, `.members`

Every component finds the others as `self.node.<component>`. A mutant has two to five lines; where it needs more, a seam
is missing.
"""

from holdfast.reference.lockd import mutants
from holdfast.reference.lockd.components import Components
from holdfast.reference.lockd.settings import Settings
from holdfast.reference.shared.mutant_table import MutantTable

_violations = MutantTable(
    mutants, Components, Settings, support=frozenset({"graded", "table"}), example="TC-ELECT-03/1"
)
violates, violation, exclude = _violations.violates, _violations.violation, _violations.exclude
all_mutants, excluded, apply = _violations.all_mutants, _violations.excluded, _violations.apply
draw, equivalents = _violations.draw, _violations.equivalents
graded = _violations.graded
