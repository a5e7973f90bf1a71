"""Conformance suite for coordinator leadership, membership and RM registry of lockd (ids TC-…)."""
