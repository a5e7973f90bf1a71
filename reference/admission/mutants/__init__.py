"""Mutants of the admission reference: each is the server with exactly one named violation."""
