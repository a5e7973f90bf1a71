"""Mutants of the small node."""
