"""Lets tests be coroutines."""

from tests.fixtures.conftest import pytest_pyfunc_call

__all__ = ["pytest_pyfunc_call"]
