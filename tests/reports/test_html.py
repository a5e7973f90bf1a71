import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from holdfast.reports import html
from holdfast.reports.model import fold_events
from holdfast.reports.picture import WIDTH, look, meter, timeline
from holdfast.run.events import DocumentFacts, Event, KnownEntry
from tests.reports.streams import RATE, ended, finished, hostile_run, part, plan, row, small_run, started

VOID = {"meta", "input", "col", "br"}


class Page(HTMLParser):
    """Every element with its attributes, and whether the tags are balanced."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [attrs for _, attrs in self.elements if name in (attrs.get("class") or "").split()]


def rendered(events: list[Event]) -> str:
    return html.render(fold_events(events).to_json())


def test_every_row_is_there_with_its_verdict_and_level() -> None:
    page = Page(rendered(small_run()))
    assert page.stack == []
    rows = [(row["data-id"], row["data-verdict"], row["data-level"]) for row in page.with_class("row")]
    assert rows == [
        ("AD-RATE-03", "fail", "MUST"),
        ("AD-STATE-01", "partial", "MUST"),
        ("AD-DRAIN-02", "pass", "SHOULD"),
        ("AD-CLOCK-01", "not-observable", "MUST"),
    ]
    buttons = {button["data-verdict"]: button["aria-pressed"] for button in page.with_class("filter")}
    assert buttons == dict.fromkeys(["pass", "not-observable", "partial", "fail"], "false")


def test_a_row_names_its_document_and_what_to_look_at_under_load() -> None:
    document = DocumentFacts("All <about> rates", "somebody/rates", "docs/rates.md", "0123456789abcdef" + "0" * 24)
    planned = plan(row(RATE, part(1, ["a"]), document=document, load="Fifty a second."))
    text = rendered([started(), planned, finished("a", "pass", (RATE, 1)), ended()])
    assert "All &lt;about&gt; rates: somebody/rates docs/rates.md at <code>0123456789ab</code>" in text
    assert "Under load: Fifty a second." in text
    assert "Under load" not in rendered(small_run())


def test_the_header_says_whether_the_plan_was_kept() -> None:
    assert "4 rows planned, 3 decided; 3 checks planned, 3 finished" in rendered(small_run())
    cut_off = rendered(small_run()[:4])
    assert "4 rows planned, 1 decided; 3 checks planned, 1 finished" in cut_off
    assert "The run was cut off: its stream has no end." in cut_off


def test_ids_are_unique_and_controls_point_to_something() -> None:
    page = Page(rendered(small_run()))
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in page.elements:
        for reference in ("aria-controls", "aria-labelledby"):
            assert attrs.get(reference) is None or attrs[reference] in ids


@pytest.mark.parametrize("events", [small_run(), hostile_run(), [], [started()], small_run()[:3]])
def test_the_page_asks_the_network_for_nothing(events: list[Event]) -> None:
    page = Page(rendered(events))
    assert page.stack == []
    for tag, attrs in page.elements:
        assert tag not in {"link", "img", "iframe", "object", "base"}
        assert "src" not in attrs
        assert "style" not in attrs, "the content security policy forbids inline styles"
        assert not any(name.startswith("on") for name in attrs)
        assert (attrs.get("href") or "#").startswith("#")


def test_only_our_own_script_and_style_may_run() -> None:
    text = rendered(hostile_run())
    page = Page(text)
    scripts = [attrs for tag, attrs in page.elements if tag == "script"]
    assert [attrs.get("type") for attrs in scripts] == ["application/json", None]
    policy = next(attrs["content"] for _, attrs in page.elements if "http-equiv" in attrs)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    for opening, closing in (("<script>", "</script>"), ("<style>", "</style>")):
        source = text.split(opening, 1)[1].split(closing, 1)[0]
        assert base64.b64encode(hashlib.sha256(source.encode()).digest()).decode() in policy


def test_the_island_is_the_results_document_and_cannot_be_left() -> None:
    document = fold_events(hostile_run()).to_json()
    match = re.search(r'<script type="application/json" id="results">(.*?)</script>', html.render(document), re.DOTALL)
    assert match
    assert "<" not in match[1]
    assert json.loads(match[1]) == json.loads(json.dumps(document))


def test_only_web_links_can_be_clicked() -> None:
    assert html.web_link("https://example.org/12") == "https://example.org/12"
    assert html.web_link("javascript:alert(1)") is None
    known = KnownEntry("pending", "https://example.org/12")
    check = finished(RATE, "known", ("AD-RATE-03", 1), known=known)
    page = Page(rendered([started(), plan(row("AD-RATE-03", part(1, [RATE]))), check, ended()]))
    hrefs = [attrs["href"] for tag, attrs in page.elements if tag == "a"]
    assert "https://example.org/12" in hrefs


def test_the_tightest_timing_is_the_one_with_the_least_margin() -> None:
    timings = [{"margin": 0.5, "name": "a"}, {"margin": None, "name": "b"}, {"margin": -0.1, "name": "c"}]
    assert html.tightest({"timings": timings}) == timings[2]
    assert html.tightest({"timings": []}) is None


def test_a_timeline_keeps_budget_tolerance_and_observation_in_order() -> None:
    drawn = timeline({"budget_s": 10.0, "tolerance_s": 0.5, "observed_s": [10.6, 10.7]})
    assert drawn is not None
    assert (
        0 < drawn.tolerance_from < drawn.budget < drawn.tolerance_to < drawn.observed_from < drawn.observed_to < WIDTH
    )
    assert drawn.observed_width >= 3


def test_what_never_came_is_drawn_to_the_edge() -> None:
    drawn = timeline({"budget_s": 2.0, "tolerance_s": None, "observed_s": [2.0, None]})
    assert drawn is not None
    assert drawn.open_ended
    assert drawn.observed_to == WIDTH


def test_without_a_budget_there_is_nothing_to_draw() -> None:
    assert timeline({"budget_s": None, "observed_s": [1.0, 2.0]}) is None
    assert timeline({"budget_s": 0.0}) is None


@pytest.mark.parametrize(
    ("judgement", "kind", "verdict"),
    [
        ("holds", "seed", "pass"),
        ("missed", "seed", "fail"),
        ("missed", "bound", "warn"),
        ("straddles", "seed", "inconclusive"),
        ("machine", "bound", "inconclusive"),
        (None, "seed", "pass"),
    ],
)
def test_a_timing_wears_the_colour_of_what_it_leads_to(judgement: str | None, kind: str, verdict: str) -> None:
    assert look({"verdict": judgement, "kind": kind}) == verdict


def test_a_missed_budget_is_an_empty_bar() -> None:
    assert [meter(-0.2), meter(None), meter(0.25), meter(3.0)] == [0, 0, 25, 100]
