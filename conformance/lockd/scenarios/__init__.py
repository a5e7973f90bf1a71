"""Chaos scenarios of lockd: whole stories under fault, each named by its place in the wire sheet (C1 … C14)."""
