"""The draws of the references themselves: everything is in or left out, and every mutant can be put into a node."""

import importlib
from types import FunctionType

import pytest

from holdfast.fixtures.launcher import Guardian
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.redis import RedisServer
from holdfast.fixtures.resp import ReplyError, ask
from holdfast.reference.shared.drawn.draw import Draw
from holdfast.reference.shared.drawn.listed import Listed
from holdfast.reference.shared.seams import function_of
from holdfast.spec.catalogue import builtin_keys


def draw(key: str) -> Draw:
    found: Draw = importlib.import_module(f"holdfast.reference.{key}.mutants.table").draw()
    return found


@pytest.mark.parametrize("key", builtin_keys())
def test_every_module_is_in_or_left_out_with_a_reason(key: str) -> None:
    scope = draw(key).scope
    scope.check()
    assert all(reason.strip() for reason in scope.left_out.values())
    assert all(scope.functions(stratum) for stratum in scope.strata)


@pytest.mark.parametrize("key", builtin_keys())
def test_every_entry_of_the_equivalents_speaks_of_a_mutant(key: str) -> None:
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    assert table.equivalents(table.draw()).entries is not None


@pytest.mark.parametrize("key", builtin_keys())
def test_every_function_that_mutants_are_drawn_from_can_be_replaced(key: str) -> None:
    scope = draw(key).scope
    for stratum in scope.strata:
        for function in scope.functions(stratum):
            if function.is_lua:
                continue
            package = "shared" if stratum.startswith("shared/") else key
            module = importlib.import_module(f"holdfast.reference.{package}.{stratum.removeprefix('shared/')}")
            owner, _, name = function.label.rpartition(".")
            value = vars(getattr(module, owner) if owner else module)[name]
            assert isinstance(function_of(value), FunctionType), function.name


@pytest.mark.parametrize("key", builtin_keys())
def test_no_drawn_mutant_is_a_listed_one(key: str) -> None:
    table = importlib.import_module(f"holdfast.reference.{key}.mutants.table")
    found = table.draw()
    listed = Listed(table.all_mutants(), found.scope.folder)
    first = [mutant for _, mutant in zip(range(60), found.mutants(1), strict=False)]
    assert len([mutant for mutant in first if not listed.has(mutant)]) > 50
    assert any(listed.rows_near(mutant)[1] for mutant in first)


async def test_redis_takes_every_changed_function(guardian: Guardian, ports: PortPool) -> None:
    """A mutant that is no Lua would only say that the node does not start."""
    await guardian.attach()
    server = await RedisServer.start(guardian, ports, "redis")
    found = draw("admission")
    wrong = []
    for stratum in (each for each in found.scope.strata if each.startswith("lua/")):
        for function in found.scope.functions(stratum):
            for mutant in found.of_function(function):
                try:
                    await ask(server.port, "SCRIPT", "LOAD", mutant.after)
                except ReplyError as error:
                    wrong.append(f"{mutant.place} {mutant.edit.says}: {error}")
    assert wrong == []
