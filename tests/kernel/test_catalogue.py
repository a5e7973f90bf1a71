from pathlib import Path

import pytest

from holdfast.spec.capability import Capability
from holdfast.spec.catalogue import CatalogueError, Document, TimingKind, builtin, load, seconds

ROW = """
[[requirement]]
id = "AD-X-01"
section = "1"
lines = "1"
level = "MUST"
origin = "seed"
title = "t"
text = "t"
needs = ["wire"]
observe = "main"
extra = [{ needs = ["redis"], observe = "more" }]
timing = ["grace"]
violations = ["one", "two"]
only_with = { "2" = ["redis"] }
"""
HEAD = """
[spec]
key = "x"
title = "t"
source = "s"
version = "1"
[timings.seed]
grace = "60s"
both = "62s"
[timings.ours.tolerance]
slack = "2s"
[formulas]
both = "grace + slack"
[limits.seed]
cap = 10
[limits.ours.parameter]
failures = 5
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "requirements.toml"
    path.write_text(text)
    return path


def test_a_row_becomes_parts_whose_needs_add_up(tmp_path: Path) -> None:
    row = load(write(tmp_path, HEAD + ROW)).requirements["AD-X-01"]
    assert [part.needs for part in row.parts] == [{Capability.WIRE}, {Capability.WIRE, Capability.REDIS}]
    assert [violation.text for violation in row.unseen_without(frozenset({Capability.REDIS}))] == ["two"]


def test_limits_of_all_tables_are_found_by_name(tmp_path: Path) -> None:
    assert load(write(tmp_path, HEAD + ROW)).limits == {"cap": 10, "failures": 5}


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ('level = "MUST"', 'level = "SHALL"', "level 'SHALL' is none of MUST, SHOULD, MAY"),
        ('timing = ["grace"]', 'timing = ["gracee"]', "timing 'gracee' is neither"),
        ('"2" = ["redis"]', '"2" = ["metrics"]', "only_with of violation 2 is met by no part"),
        ('both = "62s"', 'both = "63s"', "the sum is 62, the table says 63"),
        ("cap = 10", 'cap = "10"', "[limits] cap: '10' is no number"),
        ('both = "grace + slack"', 'neither = "grace"', "[formulas] neither: no such timing or limit"),
        ('"grace + slack"', '"grace + slak"', "unknown slak"),
        ('"grace + slack"', '"__import__(1)"', "is not allowed in a formula"),
        ('violations = ["one", "two"]', "violations = []", "no violation is named"),
        ('id = "AD-X-01"', 'id = "X1"', "an id is written like AD-RATE-03"),
        ("[timings.ours.tolerance]", "[timings.ours.margin]", "one table a kind"),
    ],
)
def test_each_broken_rule_is_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    with pytest.raises(CatalogueError, match=r".") as raised:
        load(write(tmp_path, (HEAD + ROW).replace(old, new)))
    assert complaint in str(raised.value)


COMMIT, SHA256 = "c" * 40, "5" * 64
DOCUMENT = f"""document = {{ title = "d", repository = "o/r", path = "a.md", commit = "{COMMIT}", sha256 = "{SHA256}" }}
version = "1"
"""


def test_the_public_document_is_read(tmp_path: Path) -> None:
    catalogue = load(write(tmp_path, HEAD.replace('version = "1"\n', DOCUMENT) + ROW))
    assert catalogue.document == Document("d", "o/r", "a.md", COMMIT, SHA256)
    assert load(write(tmp_path, HEAD + ROW)).document is None


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (COMMIT, "cccc", "commit is written with all of its 40"),
        (SHA256, "5555", "sha256 has 64 hexadecimal digits"),
        ('title = "d", ', "", "title is missing"),
        ("path", "paht", "'paht' is none of title, repository, path, commit, sha256"),
    ],
)
def test_a_mistake_in_the_document_is_named(tmp_path: Path, old: str, new: str, complaint: str) -> None:
    head = HEAD.replace('version = "1"\n', DOCUMENT.replace(old, new))
    with pytest.raises(CatalogueError, match=rf"\[spec\] document: {complaint}"):
        load(write(tmp_path, head + ROW))


def test_a_row_may_be_excluded_with_a_reason_and_carry_a_note_for_load(tmp_path: Path) -> None:
    more = 'violations = []\nexcluded = "speaks of the network, not of the server"\nload = "under 1000 clients"'
    text = ROW.replace('violations = ["one", "two"]', more).replace('only_with = { "2" = ["redis"] }\n', "")
    row = load(write(tmp_path, HEAD + text)).requirements["AD-X-01"]
    assert (row.excluded, row.load) == ("speaks of the network, not of the server", "under 1000 clients")


def test_a_limit_may_be_a_sum(tmp_path: Path) -> None:
    head = HEAD.replace("cap = 10", "cap = 10\ndouble = 20").replace("[formulas]", '[formulas]\ndouble = "2*cap"')
    assert load(write(tmp_path, head + ROW)).limit_formulas == {"double": "2*cap"}
    with pytest.raises(CatalogueError, match="the sum is 20, the table says 21"):
        load(write(tmp_path, head.replace("double = 20", "double = 21") + ROW))


def test_a_row_that_is_there_twice_is_found(tmp_path: Path) -> None:
    with pytest.raises(CatalogueError, match="AD-X-01 is there twice"):
        load(write(tmp_path, HEAD + ROW + ROW))


def test_a_missing_catalogue_says_which_there_are() -> None:
    with pytest.raises(CatalogueError, match="admission"):
        builtin("admision")


def test_durations_have_four_units() -> None:
    assert [seconds(text) for text in ("500ms", "2s", "5m", "1h")] == [0.5, 2, 300, 3600]
    with pytest.raises(CatalogueError):
        seconds("2 weeks")


def test_the_admission_catalogue_is_whole() -> None:
    catalogue = builtin("admission")
    assert len(catalogue.requirements) == 89
    assert sum(len(row.violations) for row in catalogue) == 259
    assert catalogue.timings["prompt"].kind is TimingKind.LATENCY
