"""The report as a reviewer opens it: from a file, in a real browser."""

import asyncio
import functools
import json
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.target import builtin_path
from tests.product.browser import Page, page
from tests.product.running import run

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


def in_a_browser(look: Callable[[Page, dict[str, Any]], Awaitable[None]]) -> Callable[[Path], None]:
    """The test with the page open; whatever it does there must log nothing and ask the network for nothing."""

    @functools.wraps(look)
    def test(results: Path) -> None:
        document = json.loads((results / "results.json").read_text())
        url = (results / "report.html").as_uri()

        async def open_and_look() -> None:
            async with page() as tab:
                await tab.open(url)
                await look(tab, document)
                await asyncio.sleep(0.2)  # what a click started may come a moment later
                await tab.evaluate("0")
                assert tab.console == []
                assert tab.requests == [url]

        asyncio.run(open_and_look())

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
