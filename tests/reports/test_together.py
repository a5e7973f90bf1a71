"""Several specs on one screen, in one summary, one document and one index."""

import io
import itertools
import json
from collections.abc import Sequence
from typing import Literal

from rich.console import Console

from holdfast.reports.index import render
from holdfast.reports.model import fold_events
from holdfast.reports.terminals import Terminals
from holdfast.reports.text import Json
from holdfast.reports.together import together
from holdfast.run.events import Event, TargetFacts
from tests.reports.streams import HOSTILE, RATE, begun, ended, finished, part, plan, row, small_run, started

LEAD = "lockd/test_elect.py::test_one_leads"


def lockd_run() -> list[Event]:
    return [
        started(specs=["lockd"], target=TargetFacts("theirs", "1", "lockd"), catalogue={"lockd": "1.0"}),
        plan(row("TC-ELECT-01", part(1, [LEAD]), spec="lockd", title="One leads")),
        begun(LEAD),
        finished(LEAD, "pass", ("TC-ELECT-01", 1), title="one leads", duration_s=30.0),
        ended(0, wall_s=31.0, cpu_s=20.0, cores=2),
    ]


def of_both(wall: float = 36.0, cpu: float = 50.0, **problems: str) -> Json:
    documents = {"admission": fold_events(small_run()).to_json(), "lockd": fold_events(lockd_run()).to_json()}
    return together(documents, problems, wall, cpu, 2)


def test_the_document_has_every_spec_the_worst_exit_code_and_the_ratio() -> None:
    document = of_both()
    assert list(document["specs"]) == ["admission", "lockd"]
    assert document["exit"] == 1, "a failure of one is a failure of all"
    assert document["summary"]["pass"] == 2
    assert document["longest_check"]["spec"] == "lockd"
    assert (document["least_wall_s"], document["wall_ratio"]) == (30.0, 1.2)
    assert of_both(wall=100.0, cpu=160.0)["wall_ratio"] == 1.25
    assert json.loads(json.dumps(document)) == document


def test_the_document_is_the_same_when_it_is_made_again_from_what_it_says() -> None:
    for wall in (54.2851619, 63.9149106, 72.0146181):
        document = of_both(wall=wall)
        assert of_both(wall=document["wall_s"], cpu=document["cpu_s"]) == document


def test_what_could_not_be_run_is_no_success() -> None:
    only = {"lockd": fold_events(lockd_run()).to_json()}
    assert together(only, {}, 36.0, 50.0, 2)["exit"] == 0
    assert together(only, {"admission": "the target does not start"}, 36.0, 50.0, 2)["exit"] == 2
    assert together({}, {"admission": "x", "lockd": "y"}, 1.0, 1.0, 2)["exit"] == 2


def shown(told: Sequence[tuple[str, Event]], document: Json | None = None, *, live: bool = False) -> str:
    out = io.StringIO()
    colours: Literal["standard"] | None = "standard" if live else None
    terminals = Terminals(
        ["admission", "lockd"],
        Console(file=out, width=110, force_terminal=live, color_system=colours),
        live=live,
    )
    for key, event in told:
        terminals.handle(key, event)
    terminals.close()
    if document:
        terminals.summary(document)
    return out.getvalue()


def mixed() -> list[tuple[str, Event]]:
    """Both runs, their events in turn."""
    one, two = [("admission", event) for event in small_run()], [("lockd", event) for event in lockd_run()]
    return [told for pair in itertools.zip_longest(one, two) for told in pair if told]


def test_plain_output_mixes_the_lines_and_ends_with_one_summary() -> None:
    text = shown(mixed(), of_both())
    assert "admission plan: 4 requirements" in text
    assert "lockd plan: 1 requirement," in text
    assert text.index("  pass          TC-ELECT-01") < text.index("— admission —") < text.index("— lockd —")
    assert text.count("AD-RATE-03  MUST  The 60 s window truly rolls") == 1, "a finding is printed as it comes"
    assert text.endswith(
        """\
admission  1 pass · 1 not-observable · 1 partial · 1 fail: exit 1, wall 7.0 s
lockd      1 pass: exit 0, wall 31.0 s
all: wall 36.0 s, CPU 50.0 s on 2 cores, longest 30.0 s: test_one_leads
wall is 1.20 times max(longest check, CPU ÷ cores)
exit 1
"""
    )


def test_the_screen_of_one_spec_ends_without_that_of_the_others() -> None:
    """On a terminal: passes are not listed, also not after the first spec has ended."""
    order = [*(("lockd", event) for event in lockd_run()), *(("admission", event) for event in small_run())]
    text = shown(order, of_both(), live=True)
    assert "a second node sees the same queue" not in text
    assert text.endswith("exit 1\n")


def test_the_screen_has_a_bar_for_each_spec_and_one_for_those_that_wait() -> None:
    out = io.StringIO()
    terminals = Terminals(["admission", "lockd"], Console(file=io.StringIO()), live=False)
    for event in (started(), plan(row("AD-RATE-03", part(1, [RATE]))), begun(RATE)):
        terminals.handle("admission", event)
    Console(file=out, width=100).print(terminals)
    assert "admission  0/1 checks" in out.getvalue()
    assert "lockd  waits for a runner" in out.getvalue()


def test_the_index_shows_counts_costs_and_problems_and_lets_no_target_in() -> None:
    document = of_both(lockd=HOSTILE)
    document["specs"]["lockd"]["target"]["name"] = HOSTILE
    text = render(document)
    assert '<a href="admission/report.html">admission</a>' in text
    assert "<script>alert" not in text
    assert "script-src" not in text
    assert "1 fail</span>" in text
    assert "36.0 s" in text
    assert "1.20" in text
