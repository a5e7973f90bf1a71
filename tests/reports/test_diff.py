from holdfast.reports.diff import Change, diff, differences, render
from holdfast.reports.model import fold_events
from holdfast.reports.text import Json
from holdfast.run.events import RowPlan
from holdfast.spec.verdict import Verdict
from tests.reports.streams import RATE, STATE, ended, finished, part, plan, row, small_run, started


def run(rate: str, *more: RowPlan, **settings: object) -> Json:
    rows = [row("AD-RATE-03", part(1, [RATE])), *more]
    return fold_events([started(**settings), plan(*rows), finished(RATE, rate, ("AD-RATE-03", 1)), ended()]).to_json()


def test_a_run_does_not_differ_from_itself() -> None:
    document = fold_events(small_run()).to_json()
    assert diff(document, document) == []
    assert differences(document, document) == []
    assert render([]) == "no row changed"


def test_worse_comes_first_then_gone_new_and_better() -> None:
    state = row("AD-STATE-01", part(1, [STATE]), title="Live state is shared")
    assert diff(run("pass", state), run("fail")) == [
        Change("AD-RATE-03", "The 60 s window truly rolls", Verdict.PASS, Verdict.FAIL),
        Change("AD-STATE-01", "Live state is shared", Verdict.INCONCLUSIVE, None),
    ]
    assert [change.word for change in diff(run("fail"), run("pass", state))] == ["new", "better"]


def test_the_rendering_says_what_else_differs() -> None:
    before, after = run("pass"), run("fail", time_scale=1.0, profile="wire")
    assert render(diff(before, after), differences(before, after)) == (
        "profile: control -> wire\n"
        "time_scale: 0.2 -> 1.0\n"
        "worse   AD-RATE-03    pass -> fail                    The 60 s window truly rolls\n"
        "1 row changed: 1 worse"
    )
