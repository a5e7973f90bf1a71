"""The files of a run: `events.jsonl` is written by the run, everything else is made from it."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from holdfast.reports.model import StreamError, fold_events
from holdfast.reports.result import Results
from holdfast.reports.text import Json
from holdfast.run.events import Event, decode
from holdfast.run.stream import EVENTS

RESULTS, JUNIT, CTRF, PAGE, ALLURE = "results.json", "junit.xml", "ctrf.json", "report.html", "allure-results"
WALKS = "walks"


def read_events(path: Path) -> Iterator[Event]:
    """Yields the events of a stream; skips kinds that this version does not know, and a last line that is torn.

    A killed run leaves such a line. Anywhere else a line that cannot be read raises StreamError.
    """
    if not path.is_file():
        raise StreamError(f"{path}: there is no such file; name the folder that a run has written its results to")
    # Bytes that are no UTF-8 must not hide a whole run; the fold writes them out as escapes.
    lines = path.read_text("utf-8", errors="surrogateescape").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        record = _record(line)
        if record is not None:
            if event := _decoded(record, f"{path}, line {number}"):
                yield event
        elif number < len(lines):
            raise StreamError(
                f"{path}, line {number}: not a JSON object. Only the last line of a killed run can be torn, "
                "so the file was changed; run again."
            )


def _decoded(record: Json, place: str) -> Event | None:
    try:
        return decode(record)
    except TypeError as error:  # a claim without an id; every other field has a default
        raise StreamError(f"{place}: {error}. No run writes this, so the file was changed; run again.") from error


def _record(text: str) -> Json | None:
    try:
        record = json.loads(text)
    except ValueError:
        return None
    return record if isinstance(record, dict) else None


def anything_happened(folder: Path) -> bool:
    """Returns whether a run in this folder came as far as its first event."""
    events = folder / EVENTS
    return events.exists() and events.stat().st_size > 0


def forget(folder: Path) -> None:
    """Removes what an earlier run left in the folder, but for its walks, which may be replayed."""
    for name in (EVENTS, RESULTS, JUNIT, CTRF, PAGE):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / ALLURE, ignore_errors=True)


def read_results(path: Path) -> Json:
    """Returns the results document at `path`: a file, or the folder of a run (folds its events if need be)."""
    if path.is_dir() and not (path / RESULTS).exists():
        return fold_events(read_events(path / EVENTS)).to_json()
    file = path / RESULTS if path.is_dir() else path
    if not file.is_file():
        raise StreamError(f"{file}: there is no such file; name the folder of a run or its {RESULTS}")
    document = _record(file.read_text("utf-8"))
    if document is None or "requirements" not in document:
        raise StreamError(f"{file}: not a results document. name the folder of a run or its {RESULTS}")
    return document


def to_text(document: Json) -> str:
    """Returns indented JSON; raises ValueError for NaN and infinity, which strict readers refuse."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def walk_files(folder: Path) -> list[Path]:
    """Returns the walks that a run found something with, as files that repeat them."""
    return sorted((folder / WALKS).glob("*.json"))


def _write_walks(folder: Path, results: Results) -> None:
    for file in walk_files(folder):
        file.unlink()
    found = [attempt.walk.replay for check in results.checks for attempt in check.finals if attempt.walk]
    for number, replay in enumerate((replay for replay in found if replay), 1):
        (folder / WALKS).mkdir(exist_ok=True)
        (folder / WALKS / f"walk-{number}.json").write_text(to_text(replay), "utf-8")


def write_all(folder: Path) -> Results:
    """Writes every report of the run in `folder` from its events alone."""
    # The renderers are heavy (templates) and only needed here.
    from holdfast.reports import allure, ctrf, html, junit

    results = fold_events(read_events(folder / EVENTS))
    document = results.to_json()
    (folder / RESULTS).write_text(to_text(document), "utf-8")
    (folder / JUNIT).write_text(junit.render(document), "utf-8")
    (folder / CTRF).write_text(to_text(ctrf.render(document)), "utf-8")
    (folder / PAGE).write_text(html.render(document), "utf-8")
    allure.write(document, folder / ALLURE)
    _write_walks(folder, results)
    return results
