import dataclasses
import datetime as dt

import pytest

from holdfast.check.verifies import CheckSpec, Claim
from holdfast.reports.model import fold_events
from holdfast.run.events import CheckFinished, PartPlan, PlanMade, RowPlan
from holdfast.run.known_failures import excuse, listed
from holdfast.run.perform import Outcome
from holdfast.spec.verdict import Verdict
from holdfast.target.descriptor import KnownFailure, builtin_path, load

ROW = "AD-X-01"
TODAY = dt.date(2026, 11, 16)
ENTRY = KnownFailure("AD-X-01", None, "being mended", "", dt.date(2027, 1, 1))
OLD = KnownFailure("AD-X-01", None, "being mended", "", dt.date(2026, 1, 1))


def test_a_listed_failure_is_known_with_its_reason() -> None:
    outcome = excuse(Outcome(Verdict.FAIL, 1, "seen 500"), ENTRY, TODAY)
    assert (outcome.verdict, outcome.reason) == (Verdict.KNOWN, "being mended: seen 500")


def test_an_expired_entry_excuses_nothing() -> None:
    outcome = excuse(Outcome(Verdict.FAIL, 1, "seen 500"), OLD, TODAY)
    assert outcome.verdict is Verdict.FAIL
    assert "expired on 2026-01-01" in outcome.reason


@pytest.mark.parametrize("verdict", [Verdict.PASS, Verdict.ERROR, Verdict.INCONCLUSIVE])
def test_only_failures_are_excused(verdict: Verdict) -> None:
    assert excuse(Outcome(verdict, 1), ENTRY, TODAY).verdict is verdict


def row(*, known_row: bool, known_part: bool, verdicts: tuple[str, str]) -> str:
    parts = [PartPlan(part=n, checks=[f"t::test_{n}"], known=n == 2 and known_part) for n in (1, 2)]
    plan = PlanMade(rows=[RowPlan(id=ROW, level="MUST", known=known_row, parts=parts)])
    finished = [
        CheckFinished(check=f"t::test_{n}", verdict=verdict, verifies=[Claim(ROW, n)])
        for n, verdict in enumerate(verdicts, 1)
    ]
    return str(fold_events([plan, *finished]).to_json()["requirements"][0]["verdict"])


def test_a_listed_row_that_passes_is_fixed_and_red() -> None:
    assert row(known_row=True, known_part=False, verdicts=("pass", "pass")) == "fixed"


def test_a_listed_row_that_fails_in_one_part_is_known() -> None:
    assert row(known_row=True, known_part=False, verdicts=("pass", "known")) == "known"


def test_a_listed_part_is_fixed_on_its_own() -> None:
    assert row(known_row=False, known_part=True, verdicts=("pass", "pass")) == "fixed"
    assert row(known_row=False, known_part=False, verdicts=("pass", "pass")) == "pass"


def test_a_walk_falls_under_an_entry_only_where_it_decided_that_row() -> None:
    target = dataclasses.replace(load(builtin_path("admission")), known_failures=(ENTRY,))
    walk = CheckSpec(lambda: None, [Claim(ROW), Claim("AD-X-02")], walk_steps=60)
    assert listed(walk, target, (ROW,)) is ENTRY
    assert listed(walk, target, ("AD-X-02",)) is None
    assert listed(walk, target, ()) is None
