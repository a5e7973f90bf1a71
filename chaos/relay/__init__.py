"""A relay for TCP and UDP behind the HTTP API of Toxiproxy 2.12, with faults that Toxiproxy does not have.

From the outside in: `process` (the command), `http` and `api` (the server and its routes), `relay` (all proxies),
`proxy` (one, with its toxics), `tcp` and `udp` (its transport), then what a toxic does: `stage` and `programs` to a
stream, `datagrams` to datagrams, chosen by `effects`. `server` is the runner's side of the process.
"""
