from holdfast.reports.diff import Change, diff, differences, exit_code_of, merged, not_looked_at, render
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


def narrowed(document: Json, way: str) -> Json:
    return {**document, "summary": {**document["summary"], "narrowed": [way]}}


def test_a_row_that_was_not_selected_is_neither_gone_nor_new() -> None:
    state = row("AD-STATE-01", part(1, [STATE]), title="Live state is shared")
    whole, part_of_it = run("pass", state), narrowed(run("fail"), "--only AD-RATE")
    assert [change.word for change in diff(whole, part_of_it)] == ["worse"]
    assert [change.word for change in diff(part_of_it, whole)] == ["better"]
    assert not_looked_at(whole, part_of_it) == ["the second run did not look at 1 row of the other: --only AD-RATE"]
    assert not_looked_at(part_of_it, whole) == ["the first run did not look at 1 row of the other: --only AD-RATE"]
    assert not_looked_at(whole, run("fail")) == [], "nothing explains it: the row is gone"


def test_another_profile_explains_rows_too() -> None:
    state = row("AD-STATE-01", part(1, [STATE]))
    assert diff(run("pass", state), run("pass", profile="wire")) == []


def test_the_exit_code_is_that_of_rows_that_got_worse() -> None:
    state = row("AD-STATE-01", part(1, [STATE]))
    assert exit_code_of(diff(run("fail"), run("pass"))) == 0
    assert exit_code_of(diff(run("fail"), run("fail"))) == 0
    assert exit_code_of(diff(run("pass"), run("fail"))) == 1
    assert exit_code_of(diff(run("pass"), run("inconclusive"))) == 2
    assert exit_code_of(diff(run("pass"), run("warn"))) == 0
    assert exit_code_of(diff(run("pass", state), run("pass"))) == 2, "a row that is gone is not decided"


def test_runs_of_several_specs_are_compared_as_one() -> None:
    both = merged([run("pass"), narrowed(run("fail"), "--only AD-RATE-03")])
    assert len(both["requirements"]) == 2
    assert both["summary"]["narrowed"] == ["--only AD-RATE-03"]
