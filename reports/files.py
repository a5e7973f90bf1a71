"""The files of a run: `events.jsonl` is written by the run, everything else is made from it."""

import json
from collections.abc import Iterator
from pathlib import Path

from holdfast.reports.model import StreamError, fold_events
from holdfast.reports.result import Results
from holdfast.reports.text import Json

EVENTS = "events.jsonl"
RESULTS = "results.json"


def read_events(path: Path) -> Iterator[Json]:
    """The events of a stream. A last line that is torn, as a killed run leaves it, is not an event."""
    # Bytes that are no UTF-8 must not hide a whole run; the model shows them as escapes.
    lines = path.read_text("utf-8", errors="surrogateescape").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    for number, line in enumerate(lines, start=1):
        event = _event(line)
        if event is not None:
            yield event
        elif number < len(lines):
            raise StreamError(
                f"{path}, line {number}: not a JSON object. Only the last line of a killed run can be torn, "
                "so the file was changed; run again."
            )


def _event(line: str) -> Json | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def read_results(path: Path) -> Json:
    """The results document at `path`: a file, or the folder of a run (made from its events where it is missing)."""
    if path.is_dir() and not (path / RESULTS).exists():
        return fold_events(read_events(path / EVENTS)).to_json()
    file = path / RESULTS if path.is_dir() else path
    document = _event(file.read_text("utf-8"))
    if document is None or "requirements" not in document:
        raise StreamError(f"{file}: not a results document. Give the folder of a run or its {RESULTS}.")
    return document


def to_text(document: Json) -> str:
    """JSON for people and programs: UTF-8, indented, and an error rather than a NaN."""
    return json.dumps(document, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def write_all(folder: Path) -> Results:
    """Writes every report of the run in `folder` from its events alone."""
    # The renderers are heavy (templates) and only needed here.
    from holdfast.reports import allure, ctrf, html, junit

    results = fold_events(read_events(folder / EVENTS))
    document = results.to_json()
    (folder / RESULTS).write_text(to_text(document), "utf-8")
    (folder / "junit.xml").write_text(junit.render(document), "utf-8")
    (folder / "ctrf.json").write_text(to_text(ctrf.render(document)), "utf-8")
    (folder / "report.html").write_text(html.render(document), "utf-8")
    allure.write(document, folder / "allure-results")
    return results
