"""Mutants of the lockd reference: each is the server with exactly one named violation."""
