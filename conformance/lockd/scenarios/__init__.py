"""Chaos scenarios of lockd: whole stories under fault, in the order of the wire sheet (C1 … C14)."""
