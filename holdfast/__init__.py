"""Holdfast proves that session, lease and leadership services keep their promises."""

__version__ = "0.1.0"
