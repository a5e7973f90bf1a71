"""CONTRIBUTING.md works as it is written: a copy of the tree gets its blocks, and its commands run there, in order."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.product.trees import ROOT, copy_of_the_tree, run_in

PAGE = ROOT / "CONTRIBUTING.md"
STEP = re.compile(
    r"(?:^Append to `(?P<file>[^`]+)`:\n\n)?^```(?P<kind>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
EXPECTED = {
    "holdfast explain AD-VER-03": "no check",
    "holdfast run admission --only AD-VER-03": "1 pass: exit 0",
    "holdfast mutants admission --only AD-VER-03": "1 mutants: 1 killed, 0 survived",
    "pytest -q tests/test_catalogues.py tests/test_layers.py": " passed",
}


def steps() -> Iterator[tuple[str, str]]:
    """The walk: (file, what is appended to it) or ("", command)."""
    walk = PAGE.read_text().partition("\n## Add a row")[2].partition("\n## ")[0]
    for step in STEP.finditer(walk):
        if step["kind"] == "console":
            yield from (("", line.removeprefix("$ ")) for line in step["body"].splitlines())
        else:
            assert step["file"], f"where does this go?\n{step['body']}"
            yield step["file"], step["body"]


def test_the_walk_through_row_check_and_mutant(tmp_path: Path) -> None:
    tree, ran = copy_of_the_tree(tmp_path / "holdfast"), []
    for file, text in steps():
        if file:
            with (tree / file).open("a") as end:
                end.write(f"\n{text}" if file.endswith(".toml") else text)
            continue
        assert EXPECTED[text] in run_in(tree, *shlex.split(text))
        ran.append(text)
    assert ran == list(EXPECTED)

    with pytest.raises(AssertionError, match="README"):
        run_in(tree, "pytest", "-q", "tests/test_pages.py")
