"""Mutants of the intents reference."""
