"""Coroutine tests with a guardian, as for the fixtures."""

import asyncio
from typing import Any

import pytest
import uvloop

from tests.fixtures.conftest import guardian, ports, pytest_pyfunc_call

__all__ = ["guardian", "ports", "pytest_pyfunc_call", "runner"]


@pytest.fixture(params=[asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Any:
    """For tests that must hold on either loop: link processes run on uvloop, and Link must not care."""
    return request.param
