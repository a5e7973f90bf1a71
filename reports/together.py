"""Several runs of one command as one document: the results of each spec, and what they come to together."""

from collections.abc import Mapping

from holdfast.reports.summary import narrowed_text
from holdfast.reports.text import Json, count, cut, seconds, visible
from holdfast.run.cost import least_wall, ratio
from holdfast.run.events import SCHEMA
from holdfast.spec.verdict import Verdict

# The worst of several exit codes: a failure says more than a run that could not judge.
_WORSE = (0, 2, 1)


def together(documents: Mapping[str, Json], problems: Mapping[str, str], wall: float, cpu: float, cores: int) -> Json:
    """`documents` are the results by spec; `problems` say why a spec has none, or was not run to its end.

    `wall` and `cpu` are those of the whole command: its own process, every runner, and all below.
    """
    # Rounded before anything is computed from it: written again from what was kept, every figure is the same.
    wall = round(wall, 3)
    codes = [document["summary"]["exit"] for document in documents.values()] + [2] * bool(problems)
    longest = _longest(documents)
    least = least_wall(longest["duration_s"] if longest else 0.0, cpu, cores)
    return {
        "schema": SCHEMA,
        "exit": max(codes, key=_WORSE.index, default=2),
        "wall_s": wall,
        "cpu_s": cpu,
        "cores": cores,
        "longest_check": longest,
        "least_wall_s": least,
        "wall_ratio": ratio(wall, least),
        "summary": {
            str(verdict): sum(document["summary"][verdict] for document in documents.values()) for verdict in Verdict
        },
        "problems": dict(problems),
        "specs": dict(documents),
    }


def _longest(documents: Mapping[str, Json]) -> Json | None:
    found = [{"spec": key, **doc["longest_check"]} for key, doc in documents.items() if doc["longest_check"]]
    return max(found, key=lambda check: float(check["duration_s"]), default=None)


def verdicts_of(document: Json) -> list[tuple[str, int]]:
    """Returns what a spec came to, by verdict, or by status for a run of mutants; what does not occur is left out."""
    summary = document["summary"]
    if mutants := summary["mutants"]:
        alarms = ("false alarm", len(mutants["false_alarms"]))
        counted = [(status, mutants[status]) for status in ("killed", "excluded", "survived", "not-judged")]
        return [(name, number) for name, number in (*counted, alarms) if number]
    return [(str(verdict), summary[verdict]) for verdict in reversed(Verdict) if summary[verdict]]


def lines(document: Json, width: int) -> list[str]:
    """Returns the last lines of the summary: one for each spec, what it cost, and the exit code."""
    specs, problems = document["specs"], document["problems"]
    first = max(map(len, (*specs, *problems)), default=0)
    said = [cut(f"{key:<{first}}  {_spec_line(specs.get(key))}", width) for key in dict.fromkeys((*specs, *problems))]
    text = f"all: wall {seconds(document['wall_s'])}, CPU {seconds(document['cpu_s'])} on "
    text += count(document["cores"], "core")
    if longest := document["longest_check"]:
        name = visible(longest["check"].rpartition("::")[2])
        text += f", longest {seconds(longest['duration_s'])}: {name}"
    said.append(cut(text, width))
    if document["wall_ratio"] is not None:
        said.append(f"wall is {document['wall_ratio']:.2f} times max(longest check, CPU ÷ cores)")
    return [*said, f"exit {document['exit']}"]


def _spec_line(document: Json | None) -> str:
    if document is None:
        return "not run"
    counted = " · ".join(f"{number} {name}" for name, number in verdicts_of(document)) or "no rows"
    said = f"exit {document['summary']['exit']}{narrowed_text(document['summary'])}"
    return f"{counted}: {said}, wall {seconds(document['wall_s'])}"
