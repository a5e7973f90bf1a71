"""A JSON text in any dialect is the same value."""

import json
from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from holdfast.reference.shared.stranger.jsontext import UNKNOWN, rewritten
from holdfast.reference.shared.stranger.traits import Traits, draw_traits

NAMES = st.integers(0, 10_000).map(lambda number: f"{number}:a#1")
PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(PLAIN, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=12)


def without_unknown(value: Any) -> Any:
    if isinstance(value, list):
        return [without_unknown(each) for each in value]
    if isinstance(value, dict):
        names = {name for name, _ in UNKNOWN}
        return {key: without_unknown(each) for key, each in value.items() if key not in names}
    return value


@given(VALUES, NAMES)
def test_the_value_stays_but_for_fields_that_nobody_knows(value: Any, name: str) -> None:
    text = rewritten(json.dumps(value).encode(), draw_traits(name))
    assert without_unknown(json.loads(text)) == without_unknown(value)


@given(st.integers(), NAMES)
def test_a_whole_number_stays_exact_for_a_reader_of_doubles(number: int, name: str) -> None:
    read = json.loads(rewritten(str(number).encode(), draw_traits(name)))
    assert int(read) == number


@given(st.binary(), NAMES)
def test_what_is_no_json_goes_through_as_it_is(raw: bytes, name: str) -> None:
    try:
        json.loads(raw)
    except ValueError:
        assert rewritten(raw, draw_traits(name)) == raw


def test_each_form_looks_as_its_name_says() -> None:
    text = b'{"b": 1500, "a": "<\xc3\xa9/", "map": {"x": 1}}'
    assert rewritten(text, Traits("", spacing="compact", keys="sorted")) == b'{"a":"<\\u00e9/","b":1500,"map":{"x":1}}'
    assert b'"b": 1500.0' in rewritten(text, Traits("", numbers="point"))
    assert b'"b": 15e2' in rewritten(text, Traits("", numbers="exponent"))
    assert "<é/".encode() in rewritten(text, Traits("", escapes="utf-8"))
    assert b"\\u003c" in rewritten(text, Traits("", escapes="html"))
    assert b"\\/" in rewritten(text, Traits("", escapes="slash"))
    assert rewritten(text, Traits("", keys="reversed")).startswith(b'{"map"')
    assert b'\r\n\t"b": 1500,' in rewritten(text, Traits("", spacing="indented"))


def test_a_map_from_ids_gets_no_entry_and_objects_of_a_list_do() -> None:
    text = b'{"map": {"x": {}}, "list": [{}]}'
    read = json.loads(rewritten(text, Traits("", extra="last")))
    assert read["map"] == {"x": {}}
    assert len(read) == 3
    assert len(read["list"][0]) == 1
    call = json.loads(rewritten(text, Traits("", extra="last"), deep=False))
    assert call["list"] == [{}]
    assert len(call) == 3
