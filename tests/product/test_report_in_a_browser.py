"""The report as a reviewer opens it: from a file, in a real browser."""

import asyncio
import functools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from holdfast.reports.files import write_all
from holdfast.reports.schema import FOLDER
from holdfast.target.descriptor import builtin_path
from tests.product.browser import Page, page
from tests.product.running import run
from tests.reports.streams import KILLED, OPEN, SURVIVOR, lines, mutant_run

SCHEMAS = ("events.schema.json", "results.schema.json")
SHOWN = "[...document.querySelectorAll('.row')].filter((row) => row.offsetParent !== null)"
LISTED = f"{SHOWN}.map((row) => [row.id, row.dataset.verdict, row.dataset.level])"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with several verdicts: a suite that believes in another build is let in nowhere."""
    folder = tmp_path_factory.mktemp("run")
    descriptor = folder / "other-build.toml"
    text = builtin_path("admission").read_text()
    descriptor.write_text(text.replace('current_build = "dev-build"', 'current_build = "other-build"'))
    ended = run(folder, "--target", str(descriptor), only=("AD-ADMIT-01", "AD-VER", "AD-SEC-05"))
    assert ended.code == 1
    assert len(set(ended.verdicts().values())) >= 3
    return folder / "results"


def test_what_the_run_wrote_keeps_to_the_schemas(results: Path) -> None:
    events, document = (Draft202012Validator(json.loads((FOLDER / name).read_text())) for name in SCHEMAS)
    for line in (results / "events.jsonl").read_text().splitlines():
        events.validate(json.loads(line))
    document.validate(json.loads((results / "results.json").read_text()))


Look = Callable[[Page, dict[str, Any]], Awaitable[None]]


def see(folder: Path, look: Look, *, width: int = 1280) -> None:
    """Opens the report and looks at it; whatever that does must log nothing and ask the network for nothing."""
    document = json.loads((folder / "results.json").read_text())
    url = (folder / "report.html").as_uri()

    async def open_and_look() -> None:
        async with page() as tab:
            await tab.open(url, width=width)
            await look(tab, document)
            await asyncio.sleep(0.2)  # what a click started may come a moment later
            await tab.evaluate("0")
            assert tab.console == []
            assert tab.requests == [url]

    asyncio.run(open_and_look())


def in_a_browser(look: Look) -> Callable[[Path], None]:
    """The test of the real run's report."""

    @functools.wraps(look)
    def test(results: Path) -> None:
        see(results, look)

    # pytest looks for fixtures in the signature that wraps() points it to.
    del test.__wrapped__
    return test


def said(document: dict[str, Any]) -> list[list[str]]:
    return [[row["id"], row["verdict"], row["level"]] for row in document["requirements"]]


async def press(tab: Page, verdict: str) -> None:
    await tab.evaluate(f"document.querySelector('.filter[data-verdict=\"{verdict}\"]').click()")


async def type_in(tab: Page, element: str, value: str, event: str) -> None:
    await tab.evaluate(
        f"(() => {{ const e = document.getElementById('{element}'); e.value = {json.dumps(value)};"
        f" e.dispatchEvent(new Event('{event}')); }})()"
    )


@in_a_browser
async def test_rows_and_verdicts_are_those_of_the_results(tab: Page, document: dict[str, Any]) -> None:
    assert sorted(await tab.evaluate(LISTED)) == sorted(said(document))
    shown = await tab.evaluate(f"{SHOWN}.map((row) => row.querySelector('.badge').innerText.trim())")
    counts = Counter(text.split()[-1].lower() for text in shown)
    assert counts == {verdict: document["summary"][verdict] for verdict in counts}
    assert sum(counts.values()) == document["summary"]["rows"]
    assert await tab.evaluate("document.getElementById('shown').innerText") == str(document["summary"]["rows"])


@in_a_browser
async def test_the_verdict_filters_show_what_they_name(tab: Page, document: dict[str, Any]) -> None:
    for verdict in {row[1] for row in said(document)}:
        await press(tab, verdict)
        assert sorted(await tab.evaluate(LISTED)) == sorted(row for row in said(document) if row[1] == verdict)
        await press(tab, verdict)
    assert len(await tab.evaluate(LISTED)) == len(said(document))


@in_a_browser
async def test_two_filters_show_the_union(tab: Page, document: dict[str, Any]) -> None:
    await press(tab, "pass")
    await press(tab, "fail")
    assert sorted(await tab.evaluate(LISTED)) == sorted(row for row in said(document) if row[1] in ("pass", "fail"))


@in_a_browser
async def test_level_and_search_narrow_the_rows(tab: Page, document: dict[str, Any]) -> None:
    await type_in(tab, "level", "SHOULD", "change")
    assert sorted(await tab.evaluate(LISTED)) == sorted(row for row in said(document) if row[2] == "SHOULD")
    await type_in(tab, "level", "", "change")
    await type_in(tab, "search", "ad-admit-01", "input")
    assert [row[0] for row in await tab.evaluate(LISTED)] == ["AD-ADMIT-01"]
    await type_in(tab, "search", "no such words", "input")
    assert await tab.evaluate(LISTED) == []
    assert await tab.evaluate("document.getElementById('shown').innerText") == "0"


@in_a_browser
async def test_a_row_opens_to_its_finding(tab: Page, document: dict[str, Any]) -> None:
    (row,) = [row for row in document["requirements"] if row["id"] == "AD-ADMIT-01"]
    text = "document.getElementById('AD-ADMIT-01').innerText"
    assert row["finding"]["seen"] not in await tab.evaluate(text)
    await tab.evaluate("document.querySelector('#AD-ADMIT-01 .toggle').click()")
    opened = await tab.evaluate(text)
    for wanted in (row["finding"]["seen"], row["text"], row["finding"]["command"]):
        assert wanted in opened


@pytest.fixture
def matrix(tmp_path: Path) -> Path:
    """The report of a run of mutants, from a stream made by hand."""
    (tmp_path / "events.jsonl").write_text(lines(mutant_run()))
    write_all(tmp_path)
    return tmp_path


MUTANTS_SHOWN = f"{SHOWN}.map((row) => row.id)"


def test_the_kill_matrix_is_filtered_and_searched_like_the_rows(matrix: Path) -> None:
    async def look(tab: Page, document: dict[str, Any]) -> None:
        assert await tab.evaluate(MUTANTS_SHOWN) == [mutant["id"] for mutant in document["mutants"]]
        await press(tab, "survived")
        assert await tab.evaluate(MUTANTS_SHOWN) == [SURVIVOR]
        await press(tab, "not-judged")
        assert await tab.evaluate(MUTANTS_SHOWN) == [SURVIVOR, OPEN]
        await press(tab, "survived")
        await press(tab, "not-judged")
        await type_in(tab, "search", "test_a_burst_across", "input")
        assert await tab.evaluate(MUTANTS_SHOWN) == [KILLED]
        assert await tab.evaluate("document.getElementById('shown').innerText") == "1"

    see(matrix, look)


@pytest.mark.parametrize("width", [400, 1200])
def test_the_kill_matrix_fits_the_window(matrix: Path, width: int) -> None:
    async def look(tab: Page, _document: dict[str, Any]) -> None:
        assert await tab.evaluate("document.documentElement.scrollWidth") == width
        inside = (
            f"[...document.querySelectorAll('.mutants *')].every((e) => e.getBoundingClientRect().right <= {width})"
        )
        assert await tab.evaluate(inside)

    see(matrix, look, width=width)


def test_a_link_to_a_hidden_mutant_shows_it(matrix: Path) -> None:
    async def look(tab: Page, _document: dict[str, Any]) -> None:
        await press(tab, "killed")
        await tab.evaluate(f"document.querySelector('.cell[href=\"#{SURVIVOR}\"]').click()")
        await tab.evaluate("new Promise((done) => setTimeout(done, 50))")
        assert SURVIVOR in await tab.evaluate(MUTANTS_SHOWN)

    see(matrix, look)
