"""Chaos scenarios of the admission service: whole stories under fault, each named by the wire sheet (C1 … C14)."""
