"""Mutants of the reference server; see `table.py`."""
