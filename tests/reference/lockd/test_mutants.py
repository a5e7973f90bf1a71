"""Every mutant makes a node, a few break what they say, and the list of seams is complete."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.lockd import bundles
from holdfast.reference.lockd.components import MUTANTS, Components
from holdfast.reference.lockd.mutants import table
from holdfast.reference.lockd.mutants.table import all_mutants, excluded
from holdfast.reference.lockd.node import Node
from holdfast.reference.lockd.settings import Settings
from holdfast.reference.shared.program import with_violations
from holdfast.reference.shared.settings import BadSetting
from tests.reference.lockd.world import world


async def test_every_mutant_makes_a_node(tmp_path: Path) -> None:
    bundle = tmp_path / "server.pem"
    bundles.write(bundle, bundles.Authority.new().server_bundle(bundles.server("n1")))
    settings = Settings(bundle=str(bundle), given_self="https://127.0.0.1:1")
    for name in all_mutants():
        node = Node(settings, with_violations(Components(), [name], MUTANTS))
        assert node.http.node is node


def test_a_violation_has_a_mutant_or_a_reason() -> None:
    assert not all_mutants().keys() & excluded().keys()
    assert all(excluded().values())


def test_an_unknown_violation_is_named() -> None:
    with pytest.raises(BadSetting, match="TC-ELECT-03/1"):
        with_violations(Components(), ["TC-ELECT-03/9"], MUTANTS)


def test_the_table_lists_exactly_the_seams_that_mutants_override() -> None:
    all_mutants()
    listed, component = set(), ""
    for base, seam in re.findall(r"`([A-Z]\w*)?\.(\w+)`", table.__doc__ or ""):
        component = base or component
        listed.add(f"{component}.{seam}")
    components = [each.default for each in fields(Components) if isinstance(each.default, type)]
    assert listed == {f"{each.__name__}.{seam}" for each in components for seam in overridden(each)}


def overridden(component: type[Any]) -> set[str]:
    """Returns the attributes of a component that mutants replace."""
    mutants = [each for each in descendants(component) if each.__module__.startswith(f"{table.__package__}.")]
    return {seam for each in mutants for seam in vars(each) if hasattr(component, seam) and not seam.startswith("__")}


def descendants(parent: type[Any]) -> Iterator[type[Any]]:
    for child in parent.__subclasses__():
        yield child
        yield from descendants(child)


async def test_a_mutant_breaks_its_rule_and_nothing_else() -> None:
    async with world(VIOLATE="TC-MEMBER-04/1") as w:
        await w.server().announce(0, "https://h:1/")
        assert await w.lists(0) == sorted([w.endpoint(0), "https://h:1/"])


async def test_callers_without_a_certificate_are_served_by_the_mutant_that_asks_only() -> None:
    async with world(VIOLATE="TC-AUTH-01/6") as w:
        nobody = w.server()
        import ssl

        nobody.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.context.check_hostname = False
        nobody.context.load_verify_locations(cadata=w.authority.pem)
        assert (await nobody.get(0, "tc/leader"))["status"] == 200
        assert (await nobody.announce(0, "https://h:1"))["error"] == "tc_server_required"
