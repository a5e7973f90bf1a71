"""Tests that are coroutines, a guardian and a port pool."""

from tests.fixtures.conftest import guardian, ports, pytest_pyfunc_call

__all__ = ["guardian", "ports", "pytest_pyfunc_call"]
