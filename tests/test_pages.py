"""README and docs say what is true: commands parse, files exist, figures are the catalogue's, examples load.

What is quick to run is run, by tests/product/test_page_commands.py and test_contributing.py.
"""

import configparser
import importlib
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import typer.main
import yaml

from holdfast.chaos.relay.process import _parser as relay_parser
from holdfast.chaos.schedules.storm import load_for
from holdfast.cli.main import app
from holdfast.load import campaign
from holdfast.reference.admission.mutants.table import draw
from holdfast.reference.shared.drawn.equivalent import Equivalents
from holdfast.rooms import ROOMS
from holdfast.run.suite import checks_of
from holdfast.spec.catalogue import builtin, builtin_keys
from holdfast.target.descriptor import builtin_path, load
from tests.pages import ROOT, Command, all_commands, fenced, inline, name, pages, prose, spoken
from tests.test_layers import MAY_IMPORT, WIRING

# Commands as typer's parser knows them; typer has a click of its own, so their classes are not click's.
COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
OUR_FILE = re.compile(rf"(?:{'|'.join([*ROOMS, 'holdfast', 'tests', 'docs'])})/[\w./-]*\w/?")
INSTALLED = {"tox", ".", ".[load]"}
# A target for the schedules of a guide that need UDP links, which no built-in one has.
DATAGRAMS = """
[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:1", quic = "https://127.0.0.1:2" }
"""


def tox_environments() -> set[str]:
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    return {section.removeprefix("testenv:") for section in settings.sections() if section.startswith("testenv:")}


def check_holdfast(command: Command) -> None:
    if command.words[1:2] == ("relay",):
        relay_parser().parse_args(command.words[2:])
    elif command.words[1:] not in ((), ("--version",)):
        COMMANDS[command.words[1]].make_context(command.words[1], list(command.words[2:]))


def check_tox(command: Command) -> None:
    for before, word in zip(command.words, command.words[1:], strict=False):
        if before == "-e":
            assert set(word.split(",")) <= tox_environments(), command


def check_pytest(command: Command) -> None:
    paths = [word for word in command.words[1:] if "/" in word]
    assert all((ROOT / path).exists() for path in paths), command


def check_pip(command: Command) -> None:
    """A name that the package index has is not ours, whatever it is called."""
    assert command.words[1] == "install", command
    assert {word for word in command.words[2:] if word != "-e"} <= INSTALLED, command


def check_locust(command: Command) -> None:
    assert (ROOT / command.words[command.words.index("-f") + 1]).is_file(), command


def leave(command: Command) -> None:
    """Programs of others: curl, an editor, pre-commit, what every shell has."""


KNOWN = {
    "holdfast": check_holdfast,
    "tox": check_tox,
    "pytest": check_pytest,
    "pip": check_pip,
    "locust": check_locust,
    "curl": leave,
    "$EDITOR": leave,
    "python3": leave,
    ".": leave,
    "kill": leave,
}


@pytest.mark.parametrize("command", all_commands(), ids=str)
def test_every_command_of_a_console_block_is_one(command: Command) -> None:
    KNOWN[command.words[0]](command)


@pytest.mark.parametrize("command", [each for each in spoken() if each.words[0] == "holdfast"], ids=str)
def test_every_command_in_a_sentence_exists_with_its_options(command: Command) -> None:
    if len(command.words) == 1 or command.words[1] in ("relay", "--version", "--install-completion"):
        return
    known = {option for each in COMMANDS[command.words[1]].params for option in each.opts}
    assert {word for word in command.words if word.startswith("-")} <= known


@pytest.mark.parametrize("command", [each for each in spoken() if each.words[0] != "holdfast"], ids=str)
def test_every_environment_and_path_in_a_sentence_exists(command: Command) -> None:
    KNOWN.get(command.words[0], leave)(command)


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_link_and_every_file_that_a_page_names_exists(page: Path) -> None:
    links = [to for to in re.findall(r"\]\(([^)#]+)\)", prose(page)) if "://" not in to]
    missing = [to for to in links if not (page.parent / to).exists()]
    # What was true at a release may be gone today.
    named = [] if page.name == "CHANGELOG.md" else [code for code in inline(page) if OUR_FILE.fullmatch(code)]
    assert missing + [code for code in named if not (ROOT / code).exists()] == []


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_module_and_function_that_a_page_names_is_there(page: Path) -> None:
    named = set(re.findall(r"\b(holdfast(?:\.[a-z][a-z_]*)+)(?::(\w+))?", page.read_text()))
    modules = {module: importlib.import_module(module) for module, _ in named}
    assert [function for module, function in named if function and not hasattr(modules[module], function)] == []


def test_the_table_of_rooms_says_what_the_layer_test_enforces() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(
        r"^\| `(?:holdfast/)?(\w+)/` \| .* \| ([^|;]*)(?:; the harness also ([^|]*))?\|$", text, re.MULTILINE
    )
    said = {room: set(re.findall(r"\w+", may)) & set(MAY_IMPORT) for room, may, _ in rows}
    said["reports"] = {"spec", "target", "check", "run"}  # "the kernel"
    assert said == {room: may - {"proto"} for room, may in MAY_IMPORT.items()}
    assert [set(re.findall(r"\w+", also)) for *_, also in rows if also] == list(WIRING.values())


def violations(key: str) -> int:
    return sum(len(row.violations) for row in builtin(key))


def test_the_table_of_the_readme_has_the_figures_of_the_catalogues() -> None:
    row = re.compile(r"^\| `(\w+)` \| .* \| (\d+) \| .*every one of the (\d+) violations a mutant \|$", re.MULTILINE)
    told = {key: (int(rows), int(count)) for key, rows, count in row.findall((ROOT / "README.md").read_text())}
    assert told == {key: (len(builtin(key).requirements), violations(key)) for key in builtin_keys()}, "README.md"


@pytest.mark.parametrize("page", pages(), ids=name)
def test_every_other_count_is_one_of_a_catalogue(page: Path) -> None:
    counts = {
        "rows": {len(builtin(key).requirements) for key in builtin_keys()},
        "violations": {violations(key) for key in builtin_keys()},
    }
    counts |= {"requirements": counts["rows"], "mutants": counts["violations"]}
    said = re.findall(r"(?<![-\w.])(\d+) (requirements|rows|violations|mutants)\b", page.read_text())
    assert [f"{number} {what}" for number, what in said if int(number) not in counts[what]] == []


def test_scenarios_are_numbered_as_the_pages_say() -> None:
    """`C1 to C14` of each spec: no more, none missing."""
    said = {end for page in pages() for end in re.findall(r"\bC1 to C(\d+)\b", page.read_text())}
    for key in builtin_keys():
        checks = [check.partition("::")[2] for check in checks_of(key, scenarios=True)]
        numbers = sorted(int(found[1]) for check in checks if (found := re.match(r"test_c(\d+)_", check)))
        assert numbers == list(range(1, len(numbers) + 1))
        assert said == {str(len(numbers))}


def toml_examples() -> list[tuple[Path, str]]:
    return [(page, text) for page in pages() if page.name.startswith("guide-") for text in fenced(page, "toml")]


@pytest.mark.parametrize(("page", "text"), toml_examples(), ids=lambda each: getattr(each, "name", ""))
def test_every_descriptor_and_schedule_of_a_guide_is_read(page: Path, text: str, tmp_path: Path) -> None:
    data = tomllib.loads(text)
    if "equivalent" in data:
        (tmp_path / "equivalent.toml").write_text(text)
        assert Equivalents(tmp_path / "equivalent.toml", draw()).entries
        return
    if "campaign" in data:
        assert campaign.parse(text)
        return
    if "schedule" in data:
        (tmp_path / "schedule.toml").write_text(text)
        (tmp_path / "datagrams.toml").write_text(DATAGRAMS)
        descriptor = tmp_path / "datagrams.toml" if "udp:" in text else builtin_path("admission")
        load_for(load(descriptor), tmp_path / "schedule.toml")
        return
    spec = next((key for key in builtin_keys() if key in page.name), "admission")
    head = f'[target]\nname = "mine"\nspec = "{spec}"\n'
    node = '[[node]]\nnames = ["a", "b"]\nurls = { http = "http://127.0.0.1:1", https = "https://127.0.0.1:1" }\n'
    parts = [head if "target" not in data else "", node if "node" not in data else "", text]
    if isinstance(data.get("node"), dict):  # an excerpt that goes on where a [[node]] left off
        parts = [head, node, text]
    (tmp_path / "example.toml").write_text("\n".join(parts).replace("env:", ""))
    target = load(tmp_path / "example.toml")
    assert set(re.findall(r"\{files\.(\w+)\}", text)) == set(target.files)


def test_the_lists_of_rooms_agree() -> None:
    """`holdfast/rooms.py` is asked at run time; what builds, lints and measures has lists of its own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]
    attributes = (ROOT / ".gitattributes").read_text().splitlines()
    assert f"ROOMS = {ROOMS}".replace("'", '"') in (ROOT / "hatch_build.py").read_text()
    assert {f"/holdfast/{room}" for room in ROOMS} == set(project["hatch"]["build"]["exclude"])
    assert {f"/holdfast/{room} -text" for room in ROOMS} == {
        line for line in attributes if line.startswith("/holdfast")
    }
    assert {f"holdfast/{room}" for room in ROOMS} == set(project["ruff"]["extend-exclude"])
    assert {"holdfast", *ROOMS} == set(project["coverage"]["run"]["source"])
    assert {"holdfast", *ROOMS} <= set(project["hatch"]["build"]["targets"]["sdist"]["only-include"])


def test_the_hooks_before_a_commit_run_what_lint_and_types_run() -> None:
    (local,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert Counter(hook["entry"] for hook in local["hooks"]) == {"tox -q -e lint": 1, "tox -q -e types": 1}
    assert {"lint", "types"} <= tox_environments()


def test_the_changelog_has_an_unreleased_section_first() -> None:
    assert re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)[0] == "Unreleased"
