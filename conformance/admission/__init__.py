"""Conformance suite for character session admission (ids AD-…)."""
