from pathlib import Path

import pytest

from holdfast.cli.init import commented_descriptor
from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import TargetError, builtin_path, load

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
        ('spec = "admission"', "spec = 3", "must be text"),
        ('urls = { http = "http://127.0.0.1:1" }', 'start = "x"', "[[node]] a ready: missing"),
        ('urls = { http = "http://127.0.0.1:1" }', 'ready = { tcp = "grpc" }', "tcp needs a URL 'grpc'; urls has none"),
        ('name = "a"', 'name = "a"\nready = { tpc = "http" }', "name one of http, tcp, grpc"),
        ('name = "a"', 'name = "a"\nready = { log = "(" }', "is no regular expression"),
        ('name = "a"', 'name = "a"\nready = { tcp = "http", service = "x" }', "tcp takes no service; it takes within"),
        ('name = "a"', 'name = "a"\nready = { tcp = "http", within = "soon" }', "is no duration"),
        ('name = "a"', 'names = ["a", "a"]', "a: is there twice"),
        ('name = "a"', 'name = "a b"', "letters, digits, - and _ only"),
        ('name = "a"', 'name = "redis"', "means another part of a deployment"),
        ('name = "a"', 'names = ["a", "a-redis"]', "a-redis: two links, or a node and a link"),
        ('name = "a"', 'name = "a"\nafter = ["gc"]', "no node has the role 'gc'; there are: node"),
        ('name = "a"', 'name = "a"\nafter = ["node"]', "node wait for each other"),
        ('name = "a"', 'name = "a"\nmetrics = { url = "ops" }', "[[node]] a metrics: write a path"),
        ('name = "a"', 'name = "a"\nmetrics = { url = "ops", path = "/m" }', "no URL 'ops'; urls has http"),
        ("[[node]]", "[observe]\nmetrics = { node = 3 }\n[[node]]", "[observe] metrics node: write a path"),
        ("[[node]]", '[links]\nproxies = { x-redis = "p" }\n[[node]]', "[links] proxies: x-redis: no such link"),
        ("[[node]]", '[links]\nproxies = { a-redis = "p" }\n[[node]]', "[links] toxiproxy: missing"),
        (
            "[[node]]",
            '[settings]\ng = { env = "G", unit = "days" }\n[[node]]',
            "'days' is none of seconds, ms, go, iso",
        ),
        ("[[node]]", '[settings]\ng = { env = "G", roles = ["api"] }\n[[node]]', "no node has the role 'api'"),
        ("[[node]]", '[settings]\ng = [{ env = "G" }, { flag = "-g" }]\n[[node]]', "two ways for the role node"),
        ('name = "mine"', 'name = "mine"\nprofile = "all"', "is none of wire, store, control, full"),
        ('name = "mine"', 'name = "mine"\ntime_scale = 2', "not above 0 and at most 1"),
        ('name = "a"', 'name = "a"\nstart = { module = "x" }', "write a command, or { python ="),
        ("[[node]]", "[settings]\ngrace = 3\n[[node]]", 'write { env = "VARIABLE" }'),
        ("[[node]]", '[timings]\ngrace = "soon"\n[[node]]', "is no duration"),
        ("[[node]]", '[credentials]\nadmin_token = "env:NOT_SET_ANYWHERE"\n[[node]]', "NOT_SET_ANYWHERE is not set"),
        ("[[node]]", '[known_failures]\n"AD-RATE-03" = {}\n[[node]]', "write { reason ="),
    ],
)
def test_each_mistake_names_file_key_and_remedy(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    path = write(tmp_path, WIRE_ONLY.replace(old, new, 1))
    with pytest.raises(TargetError) as raised:
        load(path)
    assert complaint in str(raised.value)
    assert str(path) in str(raised.value)


def test_what_init_writes_is_a_descriptor_once_its_blanks_are_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTH_SECRET", "secret")
    monkeypatch.setenv("ADMIN_TOKEN", "token")
    target = load(write(tmp_path, commented_descriptor("admission")))
    assert (target.spec, target.nodes[0].urls["http"]) == ("admission", "http://127.0.0.1:3000")
