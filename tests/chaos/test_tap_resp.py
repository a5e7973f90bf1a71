"""RESP read piece by piece, as the tap reads it, and addresses rewritten on the way."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chaos.tap.resp import NULL, Failure, Members, Pairs, Parser, ProtocolError, Push, encode
from holdfast.chaos.tap.rewrite import Rewriter

texts = st.binary(max_size=40)
failures = st.builds(Failure, st.from_regex(r"[A-Z]+ [a-z ]+", fullmatch=True))


def aggregates(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    lists = st.lists(inner, max_size=4)
    pairs = st.lists(st.tuples(inner, inner), max_size=2)
    return (
        lists
        | lists.map(Members)
        | pairs.map(lambda each: Pairs(value for pair in each for value in pair))
        | st.builds(Push, lists.map(tuple))
    )


values = st.recursive(
    st.none() | st.just(NULL) | st.booleans() | st.integers(-(2**40), 2**40) | texts | failures,
    aggregates,
    max_leaves=12,
)


def fed(pieces: list[bytes], *, inline: bool = False) -> list[tuple[Any, bytes]]:
    parser = Parser(inline=inline)
    return [each for piece in pieces for each in parser.feed(piece)]


def cut(data: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[a:b] for a, b in pairwise(ends)]


@given(st.lists(values, min_size=1, max_size=4), st.lists(st.integers(0, 10_000), max_size=8))
def test_wherever_a_piece_ends_the_same_values_come_with_the_same_bytes(sent: list[Any], places: list[int]) -> None:
    data = b"".join(map(encode, sent))
    got = fed(cut(data, places))
    assert [value for value, _ in got] == sent
    assert b"".join(raw for _, raw in got) == data


def test_types_of_the_third_version() -> None:
    data = (
        b"_\r\n#t\r\n,1.5\r\n(123456789012345678901\r\n=8\r\ntxt:abcd\r\n!5\r\nERR x\r\n%1\r\n+a\r\n:1\r\n~1\r\n:2\r\n"
    )
    got = [value for value, _ in fed([data])]
    assert got == [NULL, True, 1.5, 123456789012345678901, b"abcd", Failure("ERR x"), [b"a", 1], [2]]


def test_attributes_are_left_out() -> None:
    assert [value for value, _ in fed([b"|1\r\n+key\r\n+value\r\n:7\r\n"])] == [7]


def test_commands_as_people_type_them() -> None:
    assert fed([b"SET a 1\r\n"], inline=True) == [([b"SET", b"a", b"1"], b"SET a 1\r\n")]


@pytest.mark.parametrize("data", [b"GARBAGE\r\n", b"x" * 100_000])
def test_what_is_no_resp_is_refused(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        fed([data])


ADDRESSES = {"127.0.0.1:6380": "127.0.0.1:7001", "127.0.0.1:6381": "127.0.0.1:7002"}


def rewritten(value: Any) -> Any:
    ((changed, _),) = fed([Rewriter(ADDRESSES)(encode(value))])
    return changed


def test_the_address_of_the_primary_leads_through_its_link() -> None:
    assert rewritten([b"127.0.0.1", b"6380"]) == [b"127.0.0.1", b"7001"]


def test_fields_of_a_replica_are_rewritten_and_others_are_not() -> None:
    fields = [b"name", b"127.0.0.1:6381", b"ip", b"127.0.0.1", b"port", b"6381", b"runid", b"6380", b"flags", b"slave"]
    assert rewritten([fields]) == [
        [b"name", b"127.0.0.1:7002", b"ip", b"127.0.0.1", b"port", b"7002", b"runid", b"6380", b"flags", b"slave"]
    ]


def test_a_switch_is_rewritten_on_both_sides() -> None:
    said = [b"message", b"+switch-master", b"mymaster 127.0.0.1 6380 127.0.0.1 6381"]
    assert rewritten(said)[2] == b"mymaster 127.0.0.1 7001 127.0.0.1 7002"


def test_what_has_no_link_passes_byte_for_byte() -> None:
    data = b"*2\r\n$8\r\n10.0.0.1\r\n$4\r\n6380\r\n+OK\r\n"
    assert Rewriter(ADDRESSES)(data) == data


def test_an_incomplete_value_waits_for_its_rest() -> None:
    rewriter, data = Rewriter(ADDRESSES), encode([b"127.0.0.1", b"6380"])
    assert rewriter(data[:9]) == b""
    assert rewriter(data[9:]) == encode([b"127.0.0.1", b"7001"])


def test_another_protocol_passes_as_it_is() -> None:
    rewriter = Rewriter(ADDRESSES)
    assert rewriter(b"\x16\x03\x01\r\n127.0.0.1:6380") + rewriter(b" more") == b"\x16\x03\x01\r\n127.0.0.1:6380 more"


def test_maps_of_the_third_version_stay_maps() -> None:
    fields = Pairs([b"ip", b"127.0.0.1", b"port", b"6380", b"flags", Members([b"master"]), b"link", NULL])
    changed = rewritten(fields)
    assert changed == [b"ip", b"127.0.0.1", b"port", b"7001", b"flags", [b"master"], b"link", NULL]
    assert isinstance(changed, Pairs)
