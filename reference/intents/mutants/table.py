"""Mutants: API and worker with exactly one named violation, for judging the suite.

A mutant is an override of one seam, tagged with the requirement, the number of the violation and the catalogue's
sentence for it. `… intents api --violate IN-KEY-01/1` (or the variable VIOLATE) starts a process with it; every process
of a deployment gets it, and the one without the seam is as it was. There are three forms.

1. A row that replaces the bodies of Lua functions (`lua/<folder>/<name>.lua`; the signature stays):
       violation("IN-IDEM-01", 1, "…", lua={"known_session": "return nil"})
2. A row that changes settings, for constants; its function gets the settings as they were given:
       violation("IN-VALID-04", 4, "…", lambda s: {"body_max_bytes": 100 * s.body_max_bytes})
3. A subclass of one component (`components.py`); the base class tells which one it replaces:
       @violates("IN-KEY-01", 1, "…")
       class Unkeyed(IdemKeys):
           def mac(self, secret: bytes, text: str) -> str:
               return hashlib.sha256(text.encode()).hexdigest()
Violations of atomicity subclass `Split` (`split.py`): the named script then reads in one call and writes in others.

Which seam for which effect (a Lua function is written `name`, a method of a component `Component.name`):

- order of the API's checks: `Acceptance.stages`; one check: `.guard`, `.authenticate`, `.authorize`, `.decode`,
  `.validate`
- client address: `LanGuard.client_ip`, `.chain`, `.from_the_right`, `.trusted`, `.lan_allowed`
- tokens, scopes: `Principals.authenticate`, `.find`, `.same`, `.allows`
- payload: `Payloads.parse`, `.validate` and the method of each field
- key and secrets: `IdemKeys.load_secrets`, `.generated`, `.warn`, `.target`, `.bucket`, `.material`, `.mac`,
  `.current`, `.candidates`; `Acceptance.keys_of`
- look-up and insert: `accept`, `known_session`, `is_live`, `store_session`, `store_mapping`, `keep_mapping`,
  `drop_mapping`
- publish: `publish`; `Acceptance.start_event`, `.stop_event`; stop: `request_stop`
- answers: `Acceptance.respond`, `.status`, `.body`, `.conflict`; `Http.refused`, `.unavailable`; `Polls.render_session`
- phase 1: `Acceptance.dedup_lease`, `.give_back`; `ApiLeases`
- names and owners of leases: `Leases.key_service`, `.key_tuner`, `.owner_for`
- one lease: `acquire_lease`, `holder_of`, `is_mine`, `take`, `lease_life`, `renew`, `release`
- order of the worker's steps: `Orchestrator.lease_steps`; one step: `.dedup_lease`, `.take_session`, `.tuner_lease`,
  `.slots`
- verdicts: `Orchestrator.on_busy`, `.on_no_tuner`, `.on_refused`, `.may_start`, `.runs_here`
- pipeline: `Runner.run_pipeline`, `.report_ready`; `Pipelines.start`, `.up`, `.ended`, `.stop`
- renewal: `Runner.renewals`, `.period`, `.renewed`, `.renew_once`, `.on_lost`; `renew_session`
- end: `Runner.cleanup`, `.end_renewal`, `.finish`, `.released`, `.on_stop`, `.drain`; `end_session`,
  `move_session`, `may_move`
- start of a worker: `Startup.steps`, `.flush`, `.end_orphans`, `.claim`; `flushed_keys`, `expire_sessions`
- bus: `Bus.consume`, `.claim`, `.ack`; `Orchestrator.receive`, `.handle`

Every component finds the others as `self.node.<component>`. A mutant has two to five lines; if it grows, a seam is
missing.
"""

from holdfast.reference.intents import mutants
from holdfast.reference.intents.components import Components
from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared.mutant_table import MutantTable

_violations = MutantTable(
    mutants, Components, Settings, support=frozenset({"table", "reach", "split"}), example="IN-KEY-01/1"
)
violates, violation, exclude = _violations.violates, _violations.violation, _violations.exclude
all_mutants, excluded, apply = _violations.all_mutants, _violations.excluded, _violations.apply
draw, equivalents = _violations.draw, _violations.equivalents
