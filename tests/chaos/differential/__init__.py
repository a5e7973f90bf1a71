"""One script, run against our relay and against a real toxiproxy-server; where they differ, `differences` says why."""
