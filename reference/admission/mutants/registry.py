"""Mutants: the reference server with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `node --violate AD-RATE-03/1` (or the variable VIOLATE) starts a node with it. There are three forms.

1. A row that replaces the body of one Lua function (`lua/<name>.lua`; the signature stays):
       violation("AD-QUEUE-02", 2, "…", lua={"enqueue_score": "return math.floor(now / 1000)"})
2. A row or a function that changes settings, for constants; it gets the settings as they were given:
       violation("AD-RECON-04", 2, "…", settings=lambda s: {"token_ttl": 15 * s.token_ttl})
3. A subclass of one part (`parts.py`); which one is seen from its base class:
       @violates("AD-TIME-01", 1, "…")
       class NoDeadline(Attempts):
           def deadline_of(self, received: float) -> float:
               return received + 3600
Violations of atomicity subclass `Split` (`split.py`): the named script then reads in one call and writes in others.
Where Lua has to believe what the node found out before the run, subclass `Rescripted` (`rescripted.py`).

Which seam for which effect (Lua functions are written `name`, methods `Part.name`):

- clock of the scripts: `now`, `milliseconds`
- order of the checks: `Rules.precedence`, lists of Lua steps for `admit`, `reconnect` and `replace`
- one check of an attempt: the step of that name, e.g. `rate_lock`, `character_owned`, `not_suspended`
- names of keys: `marker_key`, `slots_key`, `token_key`, `grace_key`, `queue_key`, `window_key`, `lock_key`,
  `drain_key`; `limits.node` is us
- what counts as failure, hints, builds, ids: `Rules.counted`, `.retry_after`, `.poll_after`, `.build_ok`, `.is_id`
- limiter, records: `failures`, `failure_member`, `add_failure`, `record_failure`, `locks`, `set_lock`, `lock_left`
- limiter, answers: `rate_lock`, `used_up`, `allowance`, `refuse`
- admission: `may_enter`, `has_room`, `capacity_of`, `active_count`, `admit`, `new_session`, `add_session`
- queue, entries: `enqueue`, `enqueue_time`, `enqueue_score`, `score_of`, `store_entry`, `remove_entry`
- queue, answers: `position_of`, `depth_of`, `queue_cap`, `already_waiting`
- promotion, whom: `may_promote`, `pick_next`, `may_be_promoted`, `promoted`
- promotion, when: `Promoter.run`, `.wake`, `.fill`, `.promote_one`, `.announce`
- reconnect: `token_record`, `token_fits`, `resumable`, `rotate_token`, `resume`, `old_socket`, `store_token`
- grace: `drop`, `start_grace`, `cancel_grace`
- replacement: `offers_replacement`, `offer_replacement`, `cancel`, `offer_fits`, `consume_offer`
- confirmed replacement: `swap`, `end_replaced`
- drain: `draining`, step `drain`; `Admin.switch_drain`
- cleanup: `is_stale`, `grace_over`, `silent_sessions`, `expired_graces`, `reap`, `end_session`, `touch`; `Janitor`
- deadline, late work: `Attempts.deadline_of`, `.decide`, `.timed_out`, `.undo_late`; `too_late`, `undo_admission`, …
- what an attempt answers: `Http.answered`, `.add_outcome`, `.status_of`, `.limiter_headers`, `.read_body`
- poll, leave, queue leave, cancel: `Calls.status`, `.disconnect`, `.unqueue`, `.cancel`; `status`, `leave`, `owns`
- events: `Attempts.begin`, `.finish`, `.succeeded`, `.refused`, `.watch`, `.emit`; `Events.emit`
- metrics: `Attempts.outcome_label`, `.count_refusal`; `Metrics`; `gauges_of`, `peak_of`, `note_peak`
- sockets: `Sockets.attach`, `.beat`, `.acknowledge`, `.missed`, `.ended`, `.left`, `.lost`; `attach_refusal`, `holds`
- closing sockets elsewhere: `Kicks.send`, `.evict`
- outage: `RedisLink.call`, `.before_retry`; `Attempts.outage`
- Redis back: `Recovery.on_connect`, `.put_right`, `.restore`, `.stalled`; `restore`
- answers while Redis is away: `Http.unavailable`, `Metrics.scrape`
- identity, TLS, start: `Identity.authenticate`, settings, `Recovery.on_connect` with `link.connections == 0`

Every part finds the others as `self.node.<part>`. A mutant stays two to five lines; if it grows, a seam is missing.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference.admission import mutants
from holdfast.reference.admission.parts import Parts
from holdfast.reference.admission.settings import BadSetting, Settings
from holdfast.reference.violations import Mutant, Violations

SettingsChange = Callable[[Settings], Mapping[str, Any]]

_violations = Violations(mutants, Parts, support=frozenset({"registry", "rescripted", "split"}), example="AD-RATE-03/1")
violates, exclude = _violations.violates, _violations.exclude
all_mutants, excluded = _violations.all_mutants, _violations.excluded


def violation(
    requirement: str,
    number: int,
    sentence: str,
    *,
    lua: Mapping[str, str] | None = None,
    settings: SettingsChange | None = None,
    also: tuple[str, ...] = (),
) -> None:
    """Registers a mutant that is a row: another Lua body, or other constants.

    `also` names the other requirements that cannot but suffer, so that nobody takes their failure for a surprise.
    """
    if (lua is None) == (settings is None):
        raise ValueError(f"{requirement}/{number} must change either Lua functions or settings.")

    def install(parts: Parts) -> None:
        if lua is not None:
            parts.lua = {**parts.lua, **lua}
        if settings is not None:
            parts.settings = lambda given: replace(given, **settings(given))

    _violations.register(Mutant(requirement, number, sentence, install, also))


def apply(name: str, parts: Parts) -> None:
    try:
        mutant = _violations.find(name)
    except LookupError as error:
        raise BadSetting(str(error)) from None
    mutant.install(parts)
