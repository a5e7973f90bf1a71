"""A guardian and a port pool, for a real Valkey."""

from tests.fixtures.conftest import guardian, ports

__all__ = ["guardian", "ports"]
