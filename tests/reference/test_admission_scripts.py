"""How the Lua functions of the admission reference are put together, and the mutants that replace them."""

import re
import tomllib
from pathlib import Path

import pytest

from holdfast.reference.admission.mutants.registry import all_mutants, apply, violates, violation
from holdfast.reference.admission.mutants.split import Recording
from holdfast.reference.admission.parts import Parts
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.scripts import MAINS, Scripts, functions, literal, with_body
from holdfast.reference.admission.settings import BadSetting, Settings
from holdfast.reference.violations import Mutant

CATALOGUE = Path(__file__).parents[2] / "conformance" / "admission" / "requirements.toml"


def scripts(**overrides: str) -> Scripts:
    return Scripts(Rules(Settings()).limits(), overrides)


def test_a_file_holds_the_one_function_that_it_is_named_for() -> None:
    for name, source in functions().items():
        assert re.findall(r"^local function (\w+)", source, re.MULTILINE) == [name]


def test_every_function_is_reached_by_a_script() -> None:
    texts = "".join(script.text for script in scripts().all.values())
    assert [name for name in functions() if f"local function {name}(" not in texts] == []


def test_callees_stand_before_their_callers() -> None:
    text = scripts().all["decide"].text
    assert text.index("function failures(") < text.index("function refuse(") < text.index("function decide(")


def test_changes_are_made_through_write_only() -> None:
    reading = {"GET", "HGET", "HMGET", "EXISTS", "PTTL", "SCARD", "SMEMBERS", "TIME", "ZCARD", "ZCOUNT", "ZRANGE"}
    reading |= {"ZRANGEBYSCORE", "ZRANK", "ZREVRANGE", "ZSCORE"}
    called = set(re.findall(r"redis\.call\('(\w+)'", "".join(functions().values())))
    assert called <= reading


def test_a_replaced_body_keeps_the_signature_and_changes_the_script() -> None:
    changed = scripts(enqueue_score="return now")
    assert "local function enqueue_score(last, now)\nreturn now\nend" in changed.all["decide"].text
    assert changed.all["decide"].sha != scripts().all["decide"].sha
    assert changed.all["beat"].sha == scripts().all["beat"].sha


def test_an_override_of_an_unknown_function_is_refused() -> None:
    with pytest.raises(ValueError, match="No Lua function 'enqueue_skore'"):
        scripts(enqueue_skore="return now")


def test_functions_that_call_each_other_in_a_circle_are_refused() -> None:
    with pytest.raises(ValueError, match="in a circle"):
        scripts(milliseconds="return failures(facts)")


def test_a_source_without_signature_is_refused() -> None:
    with pytest.raises(ValueError, match="No signature"):
        with_body("return 1", "return 2")


def test_python_values_become_lua_source() -> None:
    assert literal({"a": [1, True, "it's"], "b": 0.5}) == r"{['a'] = {1, true, 'it\'s'}, ['b'] = 0.5}"


def test_a_recording_script_answers_with_its_writes() -> None:
    recording = Recording({**Rules(Settings()).limits(), "writes": []}, {"write": "return 0"})
    assert recording.all["decide"].text.endswith("return cjson.encode({answer, limits.writes})\n")
    assert set(recording.all) == set(MAINS)


def catalogue() -> dict[str, str]:
    rows = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["requirement"]
    return {f"{row['id']}/{n}": text for row in rows for n, text in enumerate(row["violations"], 1)}


def test_every_mutant_quotes_the_catalogue() -> None:
    sentences = catalogue()
    assert {name: mutant.sentence for name, mutant in all_mutants().items()} == {
        name: sentences[name] for name in all_mutants()
    }


@pytest.mark.parametrize("mutant", all_mutants().values(), ids=lambda mutant: mutant.name)
def test_every_mutant_replaces_one_seam(mutant: Mutant[Parts]) -> None:
    parts, whole = Parts(), Parts()
    mutant.install(parts)
    changed = [name for name in vars(whole) if getattr(parts, name) != getattr(whole, name)]
    assert len(changed) == 1
    settings = parts.settings(Settings())
    assert set(parts.scripts(parts.rules(settings).limits(), parts.lua).all) == set(MAINS)


def test_an_unknown_violation_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"AD-RATE-03/1, .*AD-RATE-03/4"):
        apply("AD-RATE-03/99", Parts())


def test_a_class_that_is_no_part_and_a_row_that_changes_nothing_are_refused() -> None:
    with pytest.raises(TypeError, match="no subclass of a part"):
        violates("AD-NONE-01", 1, "")(dict)
    with pytest.raises(ValueError, match="either Lua functions or settings"):
        violation("AD-NONE-01", 1, "")
