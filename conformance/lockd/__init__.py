"""Conformance suite for coordinator leadership, membership and RM registry of lockd (ids TC-…).

What this suite reads from a descriptor:

- `[[node]] urls`: `https` where the node serves; an `http` beside it is only the launcher's place to ask `ready`.
- `[credentials]`: `ca` (PEM file with the CA certificate and its key), `server_bundle` (`{node}` in the path is
  replaced by the node's name), and, where there are any, `tc_client_bundle` and `bundle_tool` (a command that takes
  `new ca`, `new server`, `new tcclient` and `new client` with `--ca-in`, `--out`, `--hosts`, `--cn` and `--force`).
- `[settings]`, for checks that start a node with other settings: `join`, `endpoint` (what the node calls itself),
  `listen`, `bundle`, `tc_client_bundle`, `tc_trust_dir`, `tc_allow_default_ca`, `tc_disable_auth`, `disable_mtls`,
  `store` and `fault_hook` (a file: while it exists, the node can't read its member list). Below spec time
  `leader_ttl`, `rm_register_period` and `peer_call_timeout` are needed too. Settings must override what `start` and
  `env` say, so lists are better set by environment than by a repeated flag. By default a node's join list should be
  `{peers}`: all of its deployment. Nodes tell each other where they are, so partitions need an endpoint with `{host}`
  and `{proxy}` as the HTTP proxy of what a node sends.
- `[observe] store`: a command that prints a node's stored objects, one JSON object per line (`namespace`, `key`,
  `value`).
- `[dialect]`: `guard_header`, `replica_header`, `health`, `durable_store` and `shared_store` (values of the setting
  `store`), `lone_node` (a node without other members, where Holdfast did not start the deployment).
"""
