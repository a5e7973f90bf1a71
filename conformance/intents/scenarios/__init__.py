"""Chaos scenarios of intents: long runs under faults, each named by the wire sheet (C1 … C14)."""
