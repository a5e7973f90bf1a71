"""`holdfast mutants --drawn`: servers that nobody chose to break this way, against the real suite."""

from itertools import count
from pathlib import Path
from typing import Any

from holdfast.reference.admission.mutants.table import draw, equivalents
from holdfast.reference.shared.drawn.draw import shuffled
from tests.product.running import holdfast

DRAW = draw()
EQUIVALENT = equivalents(DRAW)


def drawn(function: str, says: str) -> str:
    """Returns a name by which a mutant is drawn that makes this change."""
    return next(each.name for each in DRAW.mutants(1) if (each.function.name, each.edit.says) == (function, says))


def first_of_a_seed(function: str, says: str) -> int:
    """Returns a seed whose first mutant makes this change, and whose second is not argued to be none."""
    for seed in count(1):
        stratum = shuffled(DRAW.scope.strata, str(seed))[0]
        first = DRAW.mutant(seed, 1) if stratum == function.partition(".")[0] else None
        if first and (first.function.name, first.edit.says) == (function, says):
            second = DRAW.mutant(seed, 2)
            if second and not EQUIVALENT.argument_for(second):
                return seed
    raise AssertionError


def matrix(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    ended = holdfast(folder, "mutants", "admission", *words, "--results", "results")
    return ended.code, ended.results(), ended.text


STILLBORN = ("node.Node.start", "is not becomes is")


def test_a_deadly_mutant_is_killed_and_one_that_never_starts_is_counted_apart(tmp_path: Path) -> None:
    python = drawn("rules.Rules.is_id", "is not becomes is")
    lua = drawn("lua/version_gating/build_current", "return refuse(facts, 'VERSION_MISMATCH') is dropped")
    words = [word for name in (python, lua, drawn(*STILLBORN)) for word in ("--only", name)]
    code, results, text = matrix(tmp_path, *words)
    assert code == 0, text
    assert {mutant["id"]: mutant["status"] for mutant in results["mutants"]} == {python: "killed", lua: "killed"}
    assert all(mutant["by"] and mutant["drawn"]["diff"].count("\n@@ ") == 1 for mutant in results["mutants"])
    power = results["summary"]["mutants"]["drawn"]
    assert [dead["id"] for dead in power["stillborn"]] == [drawn(*STILLBORN)]
    assert (power["rate"], power["judged"]) == (1.0, 2)
    assert "detection power 100.0% (2 of 2 drawn mutants killed, goal 90%)" in text


def test_walks_alone_kill_what_a_client_sees_at_once(tmp_path: Path) -> None:
    name = drawn("lua/version_gating/build_current", "return refuse(facts, 'VERSION_MISMATCH') is dropped")
    code, results, text = matrix(tmp_path, "--only", name, "--by", "walks")
    (mutant,) = results["mutants"]
    assert (code, mutant["status"]) == (0, "killed"), text
    assert all("/test_walk.py::" in check for check in mutant["by"]), text


def test_another_mutant_is_drawn_for_one_that_never_starts_and_time_is_capped(tmp_path: Path) -> None:
    seed = first_of_a_seed(*STILLBORN)
    _, results, text = matrix(tmp_path, "--drawn", "1", "--seed", str(seed), "--cap", "1s")
    (mutant,) = results["mutants"]
    assert mutant["id"] == f"drawn:{seed}:2", text
    assert mutant["status"] == "killed" or "its check time of 1s is used up" in mutant["reason"], text
    assert [dead["id"] for dead in results["summary"]["mutants"]["drawn"]["stillborn"]] == [f"drawn:{seed}:1"]


def test_a_name_that_is_no_drawn_mutant_is_refused_in_a_sentence(tmp_path: Path) -> None:
    for words in (("mutants", "admission", "--only", "drawn:1"), ("serve", "admission", "--violate", "drawn:1:x")):
        ended = holdfast(tmp_path, *words)
        assert (ended.code, "write it as drawn:<seed>:<number>" in ended.err) == (2, True), ended.text


def test_listed_and_drawn_mutants_are_not_mixed(tmp_path: Path) -> None:
    for words in (("--only", "AD-RATE-03"), ("--sample", "3")):
        ended = holdfast(tmp_path, "mutants", "admission", "--drawn", "3", *words)
        assert (ended.code, "--drawn takes neither" in ended.err) == (2, True), ended.text
