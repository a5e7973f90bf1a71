import pytest

from holdfast.spec.mentions import mentions, named_in


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("Retries are allowed (TC-STEP-03).", {"TC-STEP-03"}),
        ("The token (AD-RECON-04, -07) and FR-013.", {"AD-RECON-04", "AD-RECON-07"}),
        ("moves AD-STALE-02 and -03 to stale_reclaim", {"AD-STALE-02", "AD-STALE-03"}),
        ("MC-SCORE-01 to -03", {"MC-SCORE-01", "MC-SCORE-02", "MC-SCORE-03"}),
        ("CO-FAIL-04 to CO-FAIL-06", {"CO-FAIL-04", "CO-FAIL-05", "CO-FAIL-06"}),
        ("IN-A-01, -09, IN-B-01 takes -15 s", {"IN-A-01", "IN-A-09", "IN-B-01"}),
        ("as in CO-BALANCE.", {"CO-BALANCE"}),
        ("no row at all, p95 at 12-18 s", set()),
    ],
)
def test_rows_are_found_as_people_write_them(text: str, named: set[str]) -> None:
    assert named_in(text) == named


def test_a_group_names_each_of_its_rows() -> None:
    assert mentions("as in CO-BALANCE.", "CO-BALANCE-02")
    assert not mentions("as in CO-BALANCE-01.", "CO-BALANCE-02")
