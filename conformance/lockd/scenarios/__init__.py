"""Chaos scenarios of lockd: long runs under faults, in the order of the wire sheet (C1 … C14)."""
