from collections.abc import Mapping

import pytest

from holdfast.target.roles import Listener, NodeSpec, counted, further, waves


def node(name: str, role: str, *after: str) -> NodeSpec:
    return NodeSpec(name, {}, None, {}, None, {}, role=role, after=after)


NODES = (node("mc-1", "mc", "gc"), node("mc-2", "mc", "gc"), node("gc-1", "gc"), node("mh-1", "mh", "mc", "gc"))


def names(nodes: tuple[NodeSpec, ...] | list[NodeSpec]) -> list[str]:
    return [each.name for each in nodes]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        (1, ["mc-1", "gc-1", "mh-1"]),
        (3, ["mc-1", "mc-2", "mc-3", "gc-1", "mh-1"]),
        ({"gc": 1}, ["gc-1"]),
        ({"mh": 2, "mc": 1}, ["mc-1", "mh-1", "mh-2"]),
        ({"mc": 0, "gc": 1}, ["gc-1"]),
    ],
)
def test_as_many_of_each_role_as_asked_for(asked: int | Mapping[str, int], found: list[str]) -> None:
    assert names(counted(NODES, asked)) == found


def test_copies_of_nodes_without_a_role_are_numbered() -> None:
    assert names(counted((node("a", "node"), node("n2", "node")), 4)) == ["a", "n2", "n3", "n4"]


def test_a_further_node_takes_no_name_that_is_taken() -> None:
    assert further(NODES, "gc", {"gc-1", "gc-2"}).name == "gc-3"
    assert further(NODES, "gc", set(), "spare").name == "spare"


def test_roles_start_in_waves_and_do_not_wait_for_those_that_are_not_there() -> None:
    assert [names(wave) for wave in waves(NODES)] == [["gc-1"], ["mc-1", "mc-2"], ["mh-1"]]
    assert [names(wave) for wave in waves([NODES[0], NODES[3]])] == [["mc-1"], ["mh-1"]]
    with pytest.raises(ValueError, match="wait for each other"):
        list(waves([node("a", "x", "y"), node("b", "y", "x")]))


def test_a_listener_is_at_the_url_that_it_names() -> None:
    urls = {"grpc": "http://h:1", "http": "http://h:2", "ops": "https://h:3"}
    assert Listener("/m").at(urls) == "http://h:2/m"
    assert Listener("/m", "ops").at(urls) == "https://h:3/m"
    assert Listener("/m", "no").at(urls) == Listener("/m").at({}) == ""
