"""Chaos scenarios of the admission service: long runs under faults, each named by the wire sheet (C1 … C14)."""
