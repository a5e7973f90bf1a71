"""Conformance suite for session intents, the lease-owning worker and its leases (ids IN-…).

What this suite reads from a descriptor:

- `[[node]]` with the roles `api` (URL `http`) and `worker`; where one process is both, without roles. A worker that is
  listed second is a standby: its start-up flush is off.
- `[credentials]`: `write` (its only scope is v3:write), `read` (v3:read), and where there are any `write2` to `write5`
  of other users, `admin`, `near_miss` to `near_miss3` and `idem_secret`.
- `[settings]`, for checks that start a node with other settings: `api_leases` (the migration flag), `flag_removed`,
  `idem_secret`, `idem_secret_previous`, `api_tokens` (as XG2G_API_TOKENS), `trusted_proxies`, `lan_allowed`,
  `tuner_slots` (as "0,1" or "0-3"), `startup_flush`. Below spec time `lease_ttl` and `renew_every` are needed too.
- `[observe] keys`: templates of the names that differ from `keys.IntentKeys`.
- `[stimulus] pipeline` and `[query] runs`: a pipeline that can be steered, and how often it was asked to start.
- `[dialect]`: see the catalogue.
"""
