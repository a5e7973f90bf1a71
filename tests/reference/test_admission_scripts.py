"""How the Lua functions of the admission reference are put together, and the mutants that replace them."""

import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference.admission.components import Components
from holdfast.reference.admission.mutants import table
from holdfast.reference.admission.mutants.split import Recording
from holdfast.reference.admission.mutants.table import all_mutants, apply, violates, violation
from holdfast.reference.admission.rules import Rules
from holdfast.reference.admission.scripts import FOLDER, MAINS, Scripts
from holdfast.reference.admission.settings import Settings
from holdfast.reference.shared.mutant_table import Mutant
from holdfast.reference.shared.scripts import functions, literal, read_files, with_body
from holdfast.reference.shared.settings import BadSetting

CATALOGUE = Path(__file__).parents[2] / "conformance" / "admission" / "requirements.toml"


def scripts(**overrides: str) -> Scripts:
    return Scripts(Rules(Settings()).limits(), overrides)


def test_a_file_holds_the_one_function_that_it_is_named_for() -> None:
    for name, source in functions(FOLDER).items():
        assert re.findall(r"^local function (\w+)", source, re.MULTILINE) == [name]


def test_two_functions_of_one_name_are_refused_in_whatever_folders(tmp_path: Path) -> None:
    for folder in ("queue", "replacement"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "swap.lua").write_text("local function swap()\nend\n")
    with pytest.raises(ValueError, match=r"Two Lua functions are named 'swap': .*queue.*swap\.lua and .*replacement"):
        read_files(tmp_path)


def test_every_function_is_in_the_folder_of_a_section() -> None:
    assert [path for path in read_files(FOLDER).values() if path.parent.parent != FOLDER] == []


def test_every_function_is_reached_by_a_script() -> None:
    texts = "".join(script.text for script in scripts().all.values())
    assert [name for name in functions(FOLDER) if f"local function {name}(" not in texts] == []


def test_callees_stand_before_their_callers() -> None:
    text = scripts().all["decide"].text
    assert text.index("function failures(") < text.index("function refuse(") < text.index("function decide(")


def test_changes_are_made_through_write_only() -> None:
    reading = {"GET", "HGET", "HMGET", "EXISTS", "PTTL", "SCARD", "SMEMBERS", "TIME", "ZCARD", "ZCOUNT", "ZRANGE"}
    reading |= {"ZRANGEBYSCORE", "ZRANK", "ZREVRANGE", "ZSCORE"}
    called = set(re.findall(r"redis\.call\('(\w+)'", "".join(functions(FOLDER).values())))
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
def test_every_mutant_replaces_one_seam(mutant: Mutant[Components]) -> None:
    components, whole = Components(), Components()
    mutant.install(components)
    changed = [name for name in vars(whole) if getattr(components, name) != getattr(whole, name)]
    assert len(changed) == 1
    settings = components.settings(Settings())
    assert set(components.scripts(components.rules(settings).limits(), components.lua).all) == set(MAINS)


def test_an_unknown_violation_is_answered_with_the_known_ones() -> None:
    with pytest.raises(BadSetting, match=r"AD-RATE-03/1, .*AD-RATE-03/4"):
        apply("AD-RATE-03/99", Components())


def test_a_class_that_is_no_component_and_a_row_that_changes_nothing_are_refused() -> None:
    with pytest.raises(TypeError, match="no subclass of a component"):
        violates("AD-NONE-01", 1, "")(dict)
    with pytest.raises(ValueError, match="either Lua functions or settings"):
        violation("AD-NONE-01", 1, "")


COMPONENTS: dict[str, type[Any]] = {
    each.default.__name__: each.default for each in fields(Components) if isinstance(each.default, type)
}


def listed_seams() -> set[str]:
    """Reads the seam list in the docstring of the mutant table; `.name` goes with the component before it."""
    lines = (table.__doc__ or "").partition("Which seam for which effect")[2].partition("\n\n")[2]
    seams, component = set(), ""
    for word in re.findall(r"`([\w.]+)`", lines.partition("\n\n")[0]):
        component = word.partition(".")[0] or component
        seams.add(f"{component}{word}" if word.startswith(".") else word)
    return seams


def overridden(mutant: Mutant[Components]) -> set[str]:
    """Returns the Lua functions and the methods that a mutant overrides."""
    components = Components()
    mutant.install(components)
    found = set(components.lua)
    for name, base in ((each.name, each.default) for each in fields(Components) if isinstance(each.default, type)):
        for layer in set(getattr(components, name).__mro__) - set(base.__mro__):
            found |= vars(layer).get("lua", {}).keys()
            found |= {f"{base.__name__}.{each}" for each in vars(layer) if hasattr(base, each) and each[:2] != "__"}
    return found


def test_the_seam_list_names_every_lua_function_and_every_method_that_a_mutant_overrides() -> None:
    assert set(functions(FOLDER)) - listed_seams() == set()
    assert set().union(*map(overridden, all_mutants().values())) - listed_seams() == set()


def test_the_seam_list_names_nothing_that_is_not_there() -> None:
    def exists(seam: str) -> bool:
        component, _, method = seam.partition(".")
        return seam in functions(FOLDER) or (
            component in COMPONENTS and hasattr(COMPONENTS[component], method or "__init__")
        )

    assert [seam for seam in sorted(listed_seams()) if not exists(seam)] == []
