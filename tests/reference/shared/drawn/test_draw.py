"""The draw on a reference of two functions: reproducible, even, never the original, and put into a node."""

import importlib
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.reference.shared.drawn.draw import Draw, DrawnMutant, NoSuchMutant
from holdfast.reference.shared.drawn.edit import changed, hunk
from holdfast.reference.shared.drawn.equivalent import Equivalents
from holdfast.reference.shared.drawn.scope import Scope, ScopeError

RULES = '''"""Rules."""
from functools import cached_property

LIMIT = 3


class Rules:
    def __init__(self) -> None:
        self.seen = 0

    def allowed(self, count: int) -> bool:
        """Whether one more is allowed."""
        return count < LIMIT

    @property
    def doubled(self) -> int:
        return self.seen + self.seen

    @cached_property
    def kind(self) -> str:
        return "OPEN"


def quota(count: int) -> int:
    if count > 5:
        raise ValueError
    return count
'''
OTHER = "def one(x: int) -> int:\n    return x + 1\n\n\ndef same() -> object:\n    return object()\n"
LUA = "-- Doubles.\nlocal function double(a)\n  return a * 2\nend\n"
TOML = """
python = ["rules", "other", "shared/common"]
lua = true
words = { doors = ["OPEN", "SHUT"] }
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """The package of a reference, under a name of its own: packages stay imported."""
    toy = f"toy_{abs(hash(request.node.name))}"
    key = tmp_path / toy / "key"
    files = {
        key / "rules.py": RULES,
        key / "other.py": OTHER,
        key / "lua" / "numbers" / "double.lua": LUA,
        key / "drawn.toml": TOML,
        key.parent / "shared" / "common.py": "def shared(x: int) -> bool:\n    return x == 1\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for package in (key.parent, key, key.parent / "shared"):
        (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return key


def draw(folder: Path) -> Draw:
    package = folder.parent.name
    return Draw(Scope(folder, folder.parent / "shared"), f"{package}.key", f"{package}.shared")


def drawn(folder: Path, seed: int = 1) -> list[DrawnMutant]:
    return list(draw(folder).mutants(seed))


def of(folder: Path, function: str, says: str) -> DrawnMutant:
    found = draw(folder)
    source = found.scope.find(function)
    assert source is not None
    return next(each for each in found.of_function(source) if each.edit.says == says)


def test_the_same_seed_and_number_are_the_same_mutant_in_another_process(folder: Path) -> None:
    first, second = drawn(folder), drawn(folder)
    assert [(each.name, each.diff) for each in first] == [(each.name, each.diff) for each in second]
    assert draw(folder).find(first[7].name) == first[7]
    assert [each.diff for each in drawn(folder, seed=2)] != [each.diff for each in first]


def test_a_draw_goes_round_the_modules(folder: Path) -> None:
    assert {each.module for each in drawn(folder)[:4]} == {"rules", "other", "shared/common", "lua/numbers"}


def test_every_mutant_comes_once_and_none_is_the_original(folder: Path) -> None:
    mutants = drawn(folder)
    sources = [(each.function.name, each.after) for each in mutants]
    assert len(set(sources)) == len(sources)
    assert all(each.after != each.function.source and each.runs() for each in mutants)


def test_a_mutant_is_shown_as_one_hunk_of_its_file(folder: Path) -> None:
    mutant = of(folder, "rules.Rules.allowed", "< becomes <=")
    assert mutant.diff.count("\n@@ ") == 1
    assert changed(hunk(mutant.diff)) == ["- return count < LIMIT", "+ return count <= LIMIT"]
    assert mutant.place.endswith("rules.py:13")
    assert mutant.sentence == "Rules.allowed: < becomes <="


def test_a_changed_function_takes_the_place_of_the_original(folder: Path) -> None:
    rules = importlib.import_module(f"{folder.parent.name}.key.rules")
    made_before = rules.Rules()
    of(folder, "rules.Rules.allowed", "< becomes <=").install(SimpleNamespace())
    assert made_before.allowed(3)
    of(folder, "rules.Rules.doubled", "+ becomes -").install(SimpleNamespace())
    assert rules.Rules().doubled == 0
    of(folder, "rules.Rules.kind", '"OPEN" becomes "SHUT"').install(SimpleNamespace())
    assert rules.Rules().kind == "SHUT"
    of(folder, "rules.quota", "raise ValueError is dropped").install(SimpleNamespace())
    assert rules.quota(6) == 6
    shared = importlib.import_module(f"{folder.parent.name}.shared.common")
    of(folder, "shared/common.shared", "== becomes !=").install(SimpleNamespace())
    assert shared.shared(2)


def test_a_changed_lua_function_becomes_an_override_of_its_body(folder: Path) -> None:
    components = SimpleNamespace(lua={"other": "return 1"})
    of(folder, "lua/numbers/double", "* becomes /").install(components)
    assert components.lua == {"other": "return 1", "double": "  return a / 2"}


@pytest.mark.parametrize("name", ["drawn:1", "drawn:x:1", "drawn:1:0", "drawn:1:7:2"])
def test_a_name_of_another_form_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(NoSuchMutant, match="drawn:<seed>:<number>"):
        draw(folder).find(name)


def test_a_number_past_the_last_mutant_of_its_module_is_refused(folder: Path) -> None:
    with pytest.raises(NoSuchMutant, match="no mutants left"):
        draw(folder).find("drawn:1:100001")


def test_what_is_neither_in_nor_left_out_is_refused(folder: Path) -> None:
    draw(folder).scope.check()
    (folder / "forgotten.py").write_text("")
    with pytest.raises(ScopeError, match="forgotten is neither in nor left out"):
        draw(folder).scope.check()


@pytest.mark.parametrize(
    "line", ['gone = "because"', '"rules.Rules.gone" = "because"', '"lua/numbers/gone" = "because"']
)
def test_what_is_left_out_must_be_there(folder: Path, line: str) -> None:
    (folder / "drawn.toml").write_text(f"{TOML}[left_out]\n{line}\n")
    with pytest.raises(ScopeError, match="there is no module, folder or function"):
        draw(folder).scope.check()


def test_nothing_is_drawn_from_what_is_left_out(folder: Path) -> None:
    (folder / "drawn.toml").write_text(
        f'{TOML}[left_out]\n"rules.Rules.allowed" = "because"\n"lua/numbers" = "because"\n'
    )
    draw(folder).scope.check()
    assert not any(each.function.name in {"rules.Rules.allowed", "lua/numbers/double"} for each in drawn(folder))


def test_an_unknown_key_of_the_scope_is_refused(folder: Path) -> None:
    (folder / "drawn.toml").write_text(f"{TOML}pyton = []\n")
    with pytest.raises(ScopeError, match="unknown key 'pyton'"):
        draw(folder)


ENTRY = """
[[equivalent]]
function = "{function}"
change = '''
{change}
'''
argument = "{argument}"
"""


def equivalents(folder: Path, function: str, change: str, argument: str = "They are the same.") -> Equivalents:
    file = folder / "equivalent.toml"
    file.write_text(ENTRY.format(function=function, change=change, argument=argument))
    return Equivalents(file, draw(folder))


SAME = "-        return count < LIMIT\n+        return count <= LIMIT"


def test_an_equivalent_mutant_is_found_again_by_function_and_change(folder: Path) -> None:
    found = equivalents(folder, "rules.Rules.allowed", SAME)
    assert found.argument_for(of(folder, "rules.Rules.allowed", "< becomes <=")) == "They are the same."
    others = [each for each in islice(draw(folder).mutants(1), 50) if found.argument_for(each)]
    assert {each.edit.says for each in others} == {"< becomes <="}


@pytest.mark.parametrize(
    ("function", "change", "argument", "problem"),
    [
        ("rules.Rules.gone", SAME, "x", "no mutant is drawn from a function rules.Rules.gone"),
        ("rules.Rules.allowed", SAME.replace("<=", ">"), "x", "fits no mutant"),
        ("rules.Rules.allowed", "", "x", "none of them empty"),
        ("rules.Rules.allowed", SAME, " ", "none of them empty"),
    ],
)
def test_an_entry_that_speaks_of_no_mutant_is_refused(
    folder: Path, function: str, change: str, argument: str, problem: str
) -> None:
    with pytest.raises(ScopeError, match=problem):
        equivalents(folder, function, change, argument)


def test_an_entry_that_fits_two_mutants_needs_lines_around_it(folder: Path) -> None:
    (folder / "other.py").write_text(
        "def one(x: list[int]) -> None:\n    x.a()\n    x.pop()\n    x.b()\n    x.pop()\n    x.c()\n"
    )
    change = "-    x.pop()\n+    pass"
    with pytest.raises(ScopeError, match="fits 2 mutants"):
        equivalents(folder, "other.one", change)
    assert equivalents(folder, "other.one", f"{change}\n     x.c()").entries
