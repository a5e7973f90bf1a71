"""The kernel and the fixtures serve every spec, so they use the words of none.

A word belongs to a spec if it is its key, the prefix of its ids, or a compound name of its contract, its timings, its
limits or its descriptor. Only compound names (`characterId`, `leader_ttl`): single words such as `state` belong to all.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.spec.catalogue import builtin, builtin_keys
from holdfast.target import descriptor

ROOT = Path(__file__).parent.parent
COMPOUND = re.compile(r"[a-z]+(?:_[a-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]*)+")
WORD = re.compile(r"[A-Za-z0-9]+(?:_[A-Za-z0-9]+)*")

# Where a spec may be named, because an example helps a reader: the file, and the words.
EXAMPLES: dict[str, set[str]] = {
    "holdfast/target/schema.py": {"admission"},  # the example value of [target] spec
    "holdfast/cli/main.py": {"admission", "AD"},  # help texts of arguments
    "holdfast/cli/violations.py": {"AD"},  # the form of a violation, in an error message
    "holdfast/cli/trail.py": {"admission"},  # the form of a path that `explain` prints
    "holdfast/run/collect.py": {"admission"},  # the form of a module's name
    "holdfast/run/options.py": {"AD"},  # help texts of options
    "holdfast/run/suite.py": {"admission"},  # the form of a check's id
    "holdfast/spec/catalogue.py": {"AD"},  # the form of a row's id, in an error message
    "holdfast/spec/mentions.py": {"AD", "TC"},  # the forms in which sentences name rows
    "fixtures/deployment.py": {"audit_sink"},  # how a check asks for a sink, in an error message
}
# Names that a spec shares with the kernel's own vocabulary: the kernel defines them, and the spec's files use them.
OWN = {"clock_offset", "fault_hook", "give_up"}


def sources() -> list[Path]:
    rooms = [ROOT / "holdfast" / room for room in ("spec", "target", "check", "run", "cli")]
    kernel = [path for room in rooms for path in room.rglob("*.py")]
    return [*kernel, *(ROOT / "holdfast").glob("*.py"), *(ROOT / "fixtures").glob("*.py")]


def vocabulary(key: str) -> set[str]:
    """Returns the words that only this spec uses."""
    catalogue, target = builtin(key), descriptor.load(descriptor.builtin_path(key))
    names = {*catalogue.timings, *catalogue.limits, *target.settings, *target.credentials, *target.dialect}
    fields = {name for document in contracts(key) for name in _properties(document)}
    compound = {name for name in names | fields if COMPOUND.fullmatch(name)}
    return {key, *(row.id.split("-")[0] for row in catalogue), *compound} - OWN


def contracts(key: str) -> list[Any]:
    """Returns the contracts of a spec, of calls (OpenAPI) and of messages (AsyncAPI): it need not have both."""
    return [yaml.safe_load(file.read_text()) for file in sorted((ROOT / "proto" / key).glob("*.yaml"))]


def _properties(node: Any) -> Iterator[str]:
    """Yields the names of all properties and parameters of a contract."""
    if isinstance(node, list):
        for each in node:
            yield from _properties(each)
    if isinstance(node, dict):
        yield from node.get("properties", {})
        if "in" in node and isinstance(node.get("name"), str):
            yield node["name"]
        for each in node.values():
            yield from _properties(each)


@pytest.mark.parametrize("key", builtin_keys())
def test_no_word_of_one_spec_is_in_the_kernel_or_the_fixtures(key: str) -> None:
    words = vocabulary(key)
    found = [
        f"{inside}: {', '.join(sorted(used))}"
        for path in sources()
        for inside in [path.relative_to(ROOT).as_posix()]
        if (used := words & set(WORD.findall(path.read_text())) - EXAMPLES.get(inside, set()))
    ]
    assert found == []


@pytest.mark.parametrize(("key", "word"), [("admission", "characterId"), ("lockd", "tc_client_bundle")])
def test_field_names_belong_to_the_vocabulary(key: str, word: str) -> None:
    assert word in vocabulary(key)


def test_every_exception_is_still_needed() -> None:
    unused = [
        f"{inside}: {word}"
        for inside, words in EXAMPLES.items()
        for word in words - set(WORD.findall((ROOT / inside).read_text()))
    ]
    assert unused == []
