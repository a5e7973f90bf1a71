"""Mutants: the reference server with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `node --violate AD-RATE-03/1` (or the variable VIOLATE) starts a node with it. It is in the module
named like the check module of its row: `rate_window.py` for what `test_rate_window.py` checks. There are three forms.

1. A row that replaces the bodies of Lua functions (`lua/<folder>/<name>.lua`; the signature stays):
       violation("AD-QUEUE-02", 2, "…", lua={"enqueue_score": "return math.floor(now / 1000)"})
2. A row that changes settings, for constants; its function gets the settings as they were given:
       violation("AD-RECON-04", 2, "…", settings=lambda s: {"token_ttl": 15 * s.token_ttl})
3. A subclass of one component (`components.py`); the base class tells which one it replaces:
       @violates("AD-TIME-01", 1, "…")
       class NoDeadline(Attempts):
           def deadline_of(self, received: float) -> float:
               return received + 3600
Violations of atomicity subclass `Split` (`split.py`): the named script then reads in one call and writes in others.
Where Lua has to believe what the node has read before the run, subclass `Rescripted` (`rescripted.py`).

Which seam for which effect (a Lua function is written `name`, a method of a component `Component.name`):

- clock, records: `now`, `milliseconds`, `load`, `write`; `Store.run`, `._evaluate`; all texts of scripts: `Scripts`
- names of keys: `key`, `marker_key`, `slots_key`, `token_key`, `grace_key`, `beat_key`, `queue_key`, `window_key`,
  `lock_key`, `drain_key`; limits.node is the node's own name
- order of the checks: `Rules.precedence`, lists of steps for admit, reconnect and replace; `decide`, `order_of`
- one check of any attempt: its step `rate_lock`, `character_given`, `character_known`, `character_owned`,
  `not_suspended`, `build_current`, `instance_known`, `in_service`; `character_of`, `owns`, `serving`
- what counts as failure, hints, builds, ids: `Rules.counted`, `.retry_after`, `.poll_after`, `.build_ok`, `.is_id`
- limiter, records: `failures`, `failure_member`, `add_failure`, `record_failure`, `forget_failure`, `locks`, `set_lock`
- limiter, answers: `rate_lock`, `lock_left`, `used_up`, `allowance`, `refuse`
- admission: steps `existing_session`, `free_slot`; `may_enter`, `has_room`, `capacity_of`, `active_count`, `admit`,
  `new_session`, `add_session`, `success`; `Store.decide`
- session records: `session_of`, `session_by_id`, `store_session`, `end_session`
- queue, entries: steps `queue_cap`, `enqueue`; `enqueue_time`, `enqueue_score`, `last_score`, `score_of`, `entry_of`,
  `store_entry`, `remove_entry`, `leave_other_queue`, `unqueue`
- queue, answers: step `already_waiting`; `queued`, `position_of`, `depth_of`, `status`; `Store.status`
- promotion, whom: `promote`, `may_promote`, `pick_next`, `may_be_promoted`, `promoted`
- promotion, when: `promotable`; `Promoter.run`, `.wake`, `.fill`, `.promote_one`, `.announce`
- reconnect: steps `reconnection_token`, `old_socket`, `resume`; `token_record`, `token_fits`, `token_refusal`,
  `resumable`, `rotate_token`, `store_token`
- grace: `drop`, `start_grace`, `cancel_grace`
- replacement, offer: `offers_replacement`, `offer_replacement`, `offer_fits`, `consume_offer`, `cancel`
- replacement, confirmed: steps `replacement_token`, `swap`; `end_replaced`
- drain: step `drain`; `draining`, `switch_drain`, `drain_modes`; `Admin.switch_drain`
- cleanup: `reap`, `reaped`, `is_stale`, `grace_over`, `silent_sessions`, `expired_graces`; `Janitor.hold`, `.clean`,
  `.announce`; `Store.reap`
- deadline: `Attempts.deadline_of`, `.settle`, `.decide`, `.ask`, `.timed_out`; `too_late`
- late work: `Attempts.undo_late`; `journal`, `told`, `undo`, `undo_admission`, `undo_resume`, `undo_swap`
- what an attempt answers: `Http.read_body`, `.character_of`, `.build_of`, `.token_of`, `.answered`, `.add_outcome`,
  `.status_of`, `.limiter_headers`
- poll, leave, queue leave, cancel: `FollowUps.status`, `.disconnect`, `.unqueue`, `.cancel`; `leave`
- pushed positions: `Watches.serve`
- events: `Attempts.begin`, `.finish`, `.succeeded`, `.refused`, `.emit`; `Events.emit`
- abuse: `Attempts.watch`; `FollowUps.denied`; `watch_suspicious`; `Rules.suspicious`
- counters and histograms: `Attempts.outcome_label`, `.count_refusal`; `Metrics.count_attempt`, `.count_presentation`,
  `.count_resumed`, `.observe_latency`, `.observe_wait`, `.export_from_the_start`, `._histogram`
- gauges: `gauges`, `gauges_of`, `peak_of`, `note_peak`; `Store.gauges`; `Metrics.set_gauges`, `.scrape`
- sockets: `Sockets.attach`, `.close`, `.ended`, `.left`, `.lost`; `attach`, `attach_refusal`, `holds`
- heartbeats: `Sockets.beat`, `.acknowledge`, `.missed`; `beat`, `touch`; `Store.beat`
- closing sockets elsewhere: `Kicks.send`, `.evict`
- outage: `RedisLink.call`, `.before_retry`; `Attempts.outage`; `Http.unavailable`
- Redis back: `Recovery.on_connect`, `.put_right`, `.restore`, `.stalled`; `restore`, `may_come_back`
- identity, start: `Identity.authenticate`; `Recovery.on_connect` while the link has counted no connection; settings
- administration: `Admin.put_instance`, `.put_character`; `register_instance`, `register_character`

Every component finds the others as `self.node.<component>`. A mutant has two to five lines; if it grows, a seam is
missing.
"""

from holdfast.reference.admission import mutants
from holdfast.reference.admission.components import Components
from holdfast.reference.admission.settings import Settings
from holdfast.reference.shared.mutant_table import MutantTable

_violations = MutantTable(
    mutants, Components, Settings, support=frozenset({"graded", "table", "rescripted", "split"}), example="AD-RATE-03/1"
)
violates, violation, exclude = _violations.violates, _violations.violation, _violations.exclude
all_mutants, excluded, apply = _violations.all_mutants, _violations.excluded, _violations.apply
draw, equivalents = _violations.draw, _violations.equivalents
graded = _violations.graded
