"""`holdfast diff`: two runs, of one spec or of several, and what changed between them."""

from pathlib import Path

from holdfast.reports.diff import diff, differences, exit_code_of, merged, not_looked_at, render
from holdfast.reports.files import read_results
from holdfast.reports.index import specs_in
from holdfast.reports.text import Json


def compare(before: Path, after: Path) -> tuple[str, int]:
    """Returns what changed as text, and the exit code that it calls for."""
    a, b = _results(before), _results(after)
    changes = diff(a, b)
    return render(changes, [*differences(a, b), *not_looked_at(a, b)]), exit_code_of(changes)


def _results(path: Path) -> Json:
    """The results of a run; of a folder with several specs all of theirs together."""
    several = specs_in(path) if path.is_dir() and not any((path / name).exists() for name in _OF_ONE) else []
    return merged([read_results(path / key) for key in several]) if several else read_results(path)


_OF_ONE = ("results.json", "events.jsonl")
