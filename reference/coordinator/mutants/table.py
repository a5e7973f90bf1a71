"""Mutants: coordinators with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `--violate CO-LOCK-04/1` (or the variable VIOLATE) starts a node with it; every node of a deployment
gets it. There are three forms.

1. A row that replaces the bodies of Lua functions (`lua/<folder>/<name>.lua`; the signature stays):
       violation("CO-DISP-01", 2, "…", lua={"latest_due": "return '+inf'"})
2. A row that changes settings, for constants; its function gets the settings as they were given:
       violation("CO-LOCK-02", 1, "…", lambda s: {"lease": 2 * s.lease})
3. A subclass of one component (`components.py`); the base class tells which one it replaces. With `lua`, the fence that
   the store has for the same rule is taken away too (`UNFENCED`, `LOOSE`):
       @violates("CO-ROLE-02", 2, "…", lua=UNFENCED)
       class AnyNode(Dispatcher):
           def should_run(self) -> bool:
               return True

Which seam for which effect (a Lua function is written `name`, a method of a component `Component.name`):

- names: `Names.channel`, `.lock_key`; `Ids.node_id`, `.history_id`
- lock: `Lease.set_lock`, `.renew_once`, `.release`, `.token`, `.is_leader`, `.may_act`, `.on_lost`;
  `Challenge.may_challenge`, `.on_membership_change`; `holds_lock`, `extend`
- leader work: `Duty.should_run`, `.interval`; `leads`; `Scheduler.due`, `.fire`, `next_run`; `Dispatcher.due`,
  `.dispatch`, `.assignment`; `latest_due`, `advance`, `send_work`, `offer`; `is_overdue`, `tell_workers`
- queues and topics: `Transport.fields`, `.group_name`, `.group_start`, `.read_count`, `.join`; `publish`;
  `CompetingQueue.read`, `.take`, `.claim_stuck`; `Topics.listen_once`
- competition: `AssignmentConsumer.enabled`, `.stop`; `JobHandoffSubscriber.enabled`, `.stop`, `.claim`
- ownership: `claim`, `may_own`, `may_take`, `own`, `forget`, `has_owner`, `same_epoch`, `counts`, `mark`, `is_orphan`;
  `Registry.load_at_start`, `.adopt`, `.verify`, `.count`
- a job's events: `JobEvents.may_process`, `.wanted`, `.recover_pending`, `.handle`, `.finished`; `group_of`,
  `new_entries`, `acknowledge`, `may_apply`, `is_newer`, `set_status`, `keep_log`, `finish`
- heartbeats: `CoordinatorHeartbeatService.interval`, `.beat`, `.payload`, `.role`, `.status`, `.job_count`
- deaths: `CoordinatorHealthMonitor.on_heartbeat`, `.silence`, `.is_dead`, `.notice`
- handing over: `JobHandoffPublisher.publish`, `.payload`, `.ack_timeout`, `.max_retries`, `.settled_within`,
  `.hand_over`, `.give_up`, `.late`, `.settled`; `JobHandoffAckListener.on_ack`
- taking over: `JobHandoffSubscriber.order`, `.subscribe`, `.acknowledge`, `.ack_to`, `.ack_payload`, `.is_own_offer`
- drain: `CoordinatorDrainService.stop_intake`, `.jobs_to_hand_off`, `.hand_off_all`, `.after_settled`; `Exit.within`
- orphans: `OrphanJobDetector.interval`, `.query`, `.publish`, `.payload`
- rebalancing: `Rebalancer.peers`, `.is_fresh`, `.triggered`, `.amount`, `.pause_intake`

Every component finds the others as `self.node.<component>`. A mutant has two to five lines; if it grows, a seam is
missing.
"""

from holdfast.reference.coordinator import mutants
from holdfast.reference.coordinator.components import Components
from holdfast.reference.coordinator.settings import Settings
from holdfast.reference.shared.mutant_table import MutantTable

_violations = MutantTable(
    mutants, Components, Settings, support=frozenset({"table", "fences", "piecemeal"}), example="CO-LOCK-04/1"
)
violates, violation, exclude = _violations.violates, _violations.violation, _violations.exclude
all_mutants, excluded, apply = _violations.all_mutants, _violations.excluded, _violations.apply
draw, equivalents = _violations.draw, _violations.equivalents
