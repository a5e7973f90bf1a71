import pytest

from holdfast.target.link_names import clashes, split_link


@pytest.mark.parametrize(
    ("subject", "ends"),
    [
        ("a-b", ("a", "b")),
        ("a-redis", ("a", "redis")),
        ("client-api-1", ("client", "api-1")),
        ("api-1-api-2", ("api-1", "api-2")),
        ("api-1-a", ("api-1", "a")),
        ("api-1-sentinel", ("api-1", "sentinel")),
        ("api-2-stub.gc-1", ("api-2", "stub.gc-1")),
        ("api-2-api-1.grpc", ("api-2", "api-1.grpc")),
        ("api-1-sentinel3", ("api-1", "sentinel3")),
    ],
)
def test_a_link_is_cut_where_both_sides_are_known(subject: str, ends: tuple[str, str]) -> None:
    assert split_link(subject, ["a", "b", "api-1", "api-2"]) == ends


@pytest.mark.parametrize("subject", ["a", "x-redis", "a-x", "client-redis", "", "-", "a-", "api-1-api-2"])
def test_what_is_no_link_is_told_with_the_nodes(subject: str) -> None:
    with pytest.raises(ValueError, match=r"no such link.*the nodes are a, b"):
        split_link(subject, ["a", "b"])


def test_a_name_that_may_mean_two_links_is_refused() -> None:
    nodes = ["a", "a-b", "b-c", "c"]
    with pytest.raises(ValueError, match="a to b-c or a-b to c"):
        split_link("a-b-c", nodes)
    assert "a-b-c" in clashes(nodes)


def test_names_clash_where_a_node_is_called_like_a_link() -> None:
    assert list(clashes(["a", "a-redis"])) == ["a-redis"]
    assert list(clashes(["api-1", "api-2", "worker-1"])) == []
