"""`index.html` over several specs: what each came to, what all cost, the way to each report. One file, no script.

The streams of the specs do not know what belongs to the command as a whole: its wall and CPU time, and why a spec has
no results. That is kept beside the page, in `command.json`, so that the page can be written again. A command that was
killed has left none; then the times are put together from those of the specs.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from markupsafe import Markup

from holdfast.reports.files import anything_happened, forget, to_text, write_all
from holdfast.reports.html import LOOKS, asset, environment, policy
from holdfast.reports.summary import outcome_line
from holdfast.reports.text import Json
from holdfast.reports.together import together, verdicts_of
from holdfast.spec.catalogue import builtin_keys

INDEX = "index.html"
COMMAND = "command.json"
_KEPT = ("wall_s", "cpu_s", "cores", "problems")


def write_index(folder: Path, document: Json) -> Path:
    """Writes the page over all specs of a command; returns its file."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {"specs": list(document["specs"]), **{name: document[name] for name in _KEPT}}
    (folder / COMMAND).write_text(to_text(kept), "utf-8")
    index = folder / INDEX
    index.write_text(render(document), "utf-8")
    return index


def specs_in(folder: Path) -> list[str]:
    """Returns the specs whose runs are in folders of their own below this one, in the order of the command.

    A command that was killed has not said which they are: then every spec that is there counts; mutants and walks do
    not.
    """
    order = _kept(folder).get("specs") or builtin_keys()
    return [key for key in order if anything_happened(folder / key)]


def forget_all(folder: Path) -> None:
    """Removes the reports that earlier commands left in the folder: what is there afterwards is of the next one."""
    forget(folder)
    for name in (INDEX, COMMAND):
        (folder / name).unlink(missing_ok=True)


def rewrite(folder: Path) -> Json:
    """Writes every report of every spec in this folder again, and the page over them; returns the whole document."""
    documents = {key: write_all(folder / key).to_json() for key in specs_in(folder)}
    kept = {**_from_specs(documents), **_kept(folder)}
    document = together(documents, kept["problems"], kept["wall_s"], kept["cpu_s"], kept["cores"])
    write_index(folder, document)
    return document


def _kept(folder: Path) -> Json:
    file = folder / COMMAND
    kept: Json = json.loads(file.read_text("utf-8")) if file.exists() else {}
    return kept


def _from_specs(documents: Mapping[str, Json]) -> Json:
    """What the specs say of the command: from the first start to the last end, and the sum of their work."""
    begun = {
        key: datetime.fromisoformat(each["started"]).timestamp() for key, each in documents.items() if each["started"]
    }
    ended = [begin + (documents[key]["wall_s"] or 0.0) for key, begin in begun.items()]
    return {
        "wall_s": max(ended) - min(begun.values()) if begun else 0.0,
        "cpu_s": round(sum(each["cpu_s"] or 0.0 for each in documents.values()), 2),
        "cores": max((each["cores"] or 1 for each in documents.values()), default=1),
        "problems": {},
    }


def render(document: Json) -> str:
    style = asset("report.css")
    return (
        environment()
        .get_template("index.html.j2")
        .render(
            doc=document,
            style=Markup(style),  # noqa: S704 - this package's own file
            policy=policy(style),
            verdicts={key: list(map(_shown, verdicts_of(results))) for key, results in document["specs"].items()},
            outcomes={key: outcome_line(results) for key, results in document["specs"].items()},
        )
        .lstrip()
    )


def _shown(counted: tuple[str, int]) -> tuple[str, str, int]:
    """The name, the verdict with whose colours it is shown, and the number."""
    name, number = counted
    return name, str(LOOKS.get(name, "fail" if name == "false alarm" else name)), number
