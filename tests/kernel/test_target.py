from pathlib import Path

import pytest

from holdfast.capability import Capability
from holdfast.catalogue import builtin
from holdfast.cli.describe import commented_descriptor
from holdfast.target import TargetError, builtin_path, load

WIRE_ONLY = """
[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:1" }
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text)
    return path


def test_urls_alone_are_a_wire_target(tmp_path: Path) -> None:
    target = load(write(tmp_path, WIRE_ONLY))
    assert target.capabilities() == {Capability.WIRE}
    assert (target.profile, target.time_scale, target.startable) == ("wire", 1, False)


def test_the_built_in_target_can_do_all_that_the_spec_needs() -> None:
    target = load(builtin_path("admission"))
    needed = {need for row in builtin("admission") for part in row.parts for need in part.needs}
    assert needed <= target.capabilities()
    assert len(target.nodes) == 3


def test_hooks_give_control_over_nodes_that_others_run(tmp_path: Path) -> None:
    text = WIRE_ONLY + 'kill = "docker kill mine"\nrestart = "docker start mine"\n'
    assert load(write(tmp_path, text)).capabilities() == {
        Capability.WIRE,
        Capability.CONTROL_KILL,
        Capability.CONTROL_RESTART,
    }


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("[target]", "[tarrget]", "did you mean 'target'?"),
        ('name = "mine"', 'nam = "mine"', "did you mean 'name'?"),
        ('spec = "admission"', "spec = 3", "must be str"),
        ('urls = { http = "http://127.0.0.1:1" }', "", "urls: missing"),
        ('name = "mine"', 'name = "mine"\nprofile = "all"', "is none of wire, store, control, full"),
        ('name = "mine"', 'name = "mine"\ntime_scale = 2', "not above 0 and at most 1"),
        ('name = "a"', 'name = "a"\nstart = { module = "x" }', "write a command, or { python ="),
        ("[[node]]", "[settings]\ngrace = 3\n[[node]]", 'write { env = "VARIABLE" }'),
        ("[[node]]", '[timings]\ngrace = "soon"\n[[node]]', "is no duration"),
        ("[[node]]", '[credentials]\nkey = "env:NOT_SET_ANYWHERE"\n[[node]]', "NOT_SET_ANYWHERE is not set"),
        ("[[node]]", '[known_failures]\n"AD-RATE-03" = {}\n[[node]]', "write { reason ="),
    ],
)
def test_each_mistake_names_file_key_and_remedy(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    path = write(tmp_path, WIRE_ONLY.replace(old, new, 1))
    with pytest.raises(TargetError) as raised:
        load(path)
    assert complaint in str(raised.value)
    assert str(path) in str(raised.value)


def test_what_init_writes_is_a_descriptor_once_its_blanks_are_filled(tmp_path: Path) -> None:
    target = load(write(tmp_path, commented_descriptor("admission")))
    assert (target.spec, target.nodes[0].urls["http"]) == ("admission", "http://127.0.0.1:3000")
