"""`holdfast explain`: from an id to document, checks, mutants and rules with one command."""

import json
import re
from pathlib import Path

import pytest

from tests.product.running import holdfast

ROOT = Path(__file__).parent.parent.parent
PLACE = re.compile(r"((?:conformance|reference)/\S+):(\d+)")


def places(text: str) -> list[tuple[str, str]]:
    """Each file that is named, with the text from its line on."""
    found = [(ROOT / file, int(line)) for file, line in PLACE.findall(text)]
    return [(path.name, "\n".join(path.read_text().splitlines()[line - 1 :])) for path, line in found]


def test_a_row_leads_to_its_document_checks_scenarios_and_rules(tmp_path: Path) -> None:
    ended = holdfast(tmp_path, "explain", "ad-rate-03")
    assert ended.code == 0, ended.text
    for words in (
        "AD-RATE-03  MUST  The 60 s window truly rolls",
        "dkirby-ms/tilemud specs/004-users-of-the/research.md",
        "lines 30-32",
        "part 1  needs wire",
        "rate_window = 60 s (seed)",
        "Rate window: section 3 allows a script",
    ):
        assert words in ended.out
    checks = [text for name, text in places(ended.out) if name.startswith("test_")]
    assert "scenario  conformance/admission/scenarios/" in ended.out
    assert len(checks) > 1
    assert all(text.startswith("@verifies(") for text in checks)
    assert any(text.startswith("local function failures(") for _, text in places(ended.out))
    assert "overrides  Lua function failures" in ended.out


def test_a_group_is_one_line_a_row(tmp_path: Path) -> None:
    ended = holdfast(tmp_path, "explain", "TC-STEP")
    head, *rows = ended.out.splitlines()
    assert head == "TC-STEP  lockd: 8 requirements"
    assert [row.split()[0] for row in rows] == [f"TC-STEP-{number:02}" for number in range(1, 9)]
    assert all(re.search(r"[1-9]\d* checks? +[1-9]\d* mutants? ", row) for row in rows)


def test_a_mutant_leads_to_its_rule_and_the_commands_that_try_it(tmp_path: Path) -> None:
    ended = holdfast(tmp_path, "explain", "TC-STEP-03/1")
    assert ended.code == 0, ended.text
    first, *_ = ended.out.splitlines()
    assert first == "TC-STEP-03/1  The leader goes on deciding until another leader shows up."
    assert "overrides method Election.still_leads  reference/lockd/" in ended.out
    assert "| def still_leads(self, leading: Leading, now: float) -> bool:" in ended.out
    assert any('"TC-STEP-03", 1' in text[:200] for _, text in places(ended.out))
    assert "holdfast mutants lockd --only TC-STEP-03/1" in ended.out
    assert "holdfast serve lockd --violate TC-STEP-03/1" in ended.out


@pytest.mark.parametrize(
    ("asked", "near"), [("TC-STEEP", "TC-STEP"), ("ad-rate-3", "AD-RATE-03"), ("AD-RATE-03/9", "AD-RATE-03/")]
)
def test_an_unknown_name_is_a_sentence_with_the_nearest(tmp_path: Path, asked: str, near: str) -> None:
    ended = holdfast(tmp_path, "explain", asked)
    assert (ended.code, ended.out) == (2, "")
    (sentence,) = ended.err.splitlines()
    assert sentence.startswith(f"holdfast: {asked}: no requirement, group or mutant has this name; the nearest are ")
    assert near in sentence


def test_the_requirements_as_json_name_the_document(tmp_path: Path) -> None:
    rows = json.loads(holdfast(tmp_path, "requirements", "lockd", "--json").out)
    assert {row["document"]["path"] for row in rows} == {"docs/LEADERELECTION.md"}
