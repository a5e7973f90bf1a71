"""Where the relay differs from Toxiproxy 2.12 on purpose, and why. What is listed and does not differ is an error."""

API = {
    "refused update": "2.12 keeps what it had read of an update that it refuses; we change nothing, as 2.13 does.",
    "slicer": "These values end a 2.12 server once data flows; we refuse them, as 2.13 does.",
    "ours": "Toxics, actions and fields that Toxiproxy does not have.",
    "metrics": "Ours has no counters of a Go library, and shows a proxy from its start, not from its first connection.",
}

BEHAVIOUR = {
    "bandwidth_zero": "No limit, as in 2.13; 2.12 passes nothing, for which the relay has blackhole.",
    "a_connection_that_reset_peer_spares": "A spared connection ends cleanly; 2.12 resets it (its issue 603).",
    "removing_reset_peer_during_its_wait": "The API answers at once, the connection still ends in a reset; 2.12 waits.",
}
