"""Every mutant can be put together, and a few of them are seen to break what they say."""

from pathlib import Path

import pytest

from holdfast.fixtures import bundles
from holdfast.reference.lockd.mutants.registry import all_mutants, excluded
from holdfast.reference.lockd.node import Node
from holdfast.reference.lockd.parts import parts_for
from holdfast.reference.lockd.settings import BadSetting, Settings
from tests.reference.lockd.world import world


async def test_every_mutant_makes_a_node(tmp_path: Path) -> None:
    bundle = tmp_path / "server.pem"
    bundles.write(bundle, bundles.Authority().server_bundle(bundles.server("n1")))
    settings = Settings(bundle=str(bundle), given_self="https://127.0.0.1:1")
    for name in all_mutants():
        node = Node(settings, parts_for(name))
        assert node.http.node is node


def test_a_violation_has_a_mutant_or_a_reason() -> None:
    assert not all_mutants().keys() & excluded().keys()
    assert all(excluded().values())


def test_an_unknown_violation_is_named() -> None:
    with pytest.raises(BadSetting, match="TC-ELECT-03/1"):
        parts_for("TC-ELECT-03/9")


async def test_a_mutant_breaks_its_rule_and_nothing_beside() -> None:
    async with world(VIOLATE="TC-MEMBER-04/1") as w:
        await w.server().announce(0, "https://h:1/")
        assert await w.lists(0) == sorted([w.endpoint(0), "https://h:1/"])


async def test_callers_without_a_certificate_are_served_by_the_mutant_that_asks_only() -> None:
    async with world(VIOLATE="TC-AUTH-01/6") as w:
        nobody = w.server()
        import ssl

        nobody.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        nobody.context.check_hostname = False
        nobody.context.load_verify_locations(cadata=w.authority.certificate_pem().decode())
        assert (await nobody.get(0, "tc/leader"))["status"] == 200
        assert (await nobody.announce(0, "https://h:1"))["error"] == "tc_server_required"
