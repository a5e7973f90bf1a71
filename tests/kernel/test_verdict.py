import pytest

from holdfast.spec.verdict import Verdict, exit_code, fold, fold_parts


def test_the_worst_verdict_wins_in_the_fixed_order() -> None:
    assert fold([Verdict.PASS, Verdict.WARN, Verdict.FAIL]) is Verdict.FAIL
    assert fold([Verdict.INCONCLUSIVE, Verdict.PASS]) is Verdict.INCONCLUSIVE


def test_zero_checks_are_an_error() -> None:
    assert fold([]) is Verdict.ERROR


def test_what_passed_beside_what_is_not_offered_is_partial() -> None:
    assert fold([Verdict.PASS, Verdict.NOT_APPLICABLE]) is Verdict.PARTIAL
    assert fold([Verdict.NOT_APPLICABLE]) is Verdict.NOT_APPLICABLE
    assert fold([Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.WARN]) is Verdict.WARN


def test_a_row_with_an_unseen_extra_part_is_partial() -> None:
    assert fold_parts(Verdict.PASS, [Verdict.NOT_OBSERVABLE, Verdict.PASS]) is Verdict.PARTIAL
    assert fold_parts(Verdict.PASS, [Verdict.NOT_OBSERVABLE, Verdict.FAIL]) is Verdict.FAIL
    assert fold_parts(Verdict.PASS, [Verdict.NOT_APPLICABLE]) is Verdict.PARTIAL
    assert fold_parts(Verdict.NOT_OBSERVABLE, []) is Verdict.NOT_OBSERVABLE


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([Verdict.PASS, Verdict.WARN, Verdict.KNOWN], 0),
        ([Verdict.PASS, Verdict.FAIL, Verdict.ERROR], 1),
        ([Verdict.PASS, Verdict.FIXED], 1),
        ([Verdict.PASS, Verdict.INCONCLUSIVE], 2),
        ([Verdict.PASS, Verdict.NOT_OBSERVABLE], 2),
        ([Verdict.PASS, Verdict.PARTIAL, Verdict.NOT_APPLICABLE], 0),
        ([Verdict.ERROR], 2),
        ([], 2),
    ],
)
def test_the_exit_code_says_whether_it_failed_or_could_not_judge(verdicts: list[Verdict], code: int) -> None:
    assert exit_code(verdicts) == code
