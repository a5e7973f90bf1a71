"""The report for reviewers: one HTML file that needs no network, no server and no script to be read.

Jinja escapes every value. If it ever misses one, the content security policy still forbids every script and
style but the two of this file (by their hashes) and every request. Hence no inline styles: bars and timelines are
SVG with attributes.
"""

import base64
import hashlib
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from holdfast.reports.blocked import blocked_line, told_one_by_one
from holdfast.reports.finding import citation, detail_text, interval_text, known_text, reason_beyond
from holdfast.reports.model import sentence_of
from holdfast.reports.picture import look, meter, story, timeline
from holdfast.reports.summary import group_of, group_of_mutant, outcome_line, reconciliation_line
from holdfast.reports.text import Json, count, seconds
from holdfast.spec.verdict import Verdict

_TEMPLATES = Path(__file__).parent / "templates"

# Each verdict has a sign of its own, so that colour is never the only difference.
SIGNS: dict[str, str] = {
    Verdict.ERROR: "‼",
    Verdict.FAIL: "✕",
    Verdict.FIXED: "↺",
    Verdict.WARN: "▲",
    Verdict.KNOWN: "◆",
    Verdict.INCONCLUSIVE: "?",
    Verdict.PARTIAL: "◐",
    Verdict.NOT_OBSERVABLE: "○",
    Verdict.NOT_APPLICABLE: "–",
    Verdict.PASS: "✓",
}
# A mutant is shown with the sign and the colours of the verdict that means the same to a reader.
LOOKS = {
    "killed": Verdict.PASS,
    "excluded": Verdict.NOT_APPLICABLE,
    "not-judged": Verdict.INCONCLUSIVE,
    "survived": Verdict.FAIL,
}
ATTENTION = (Verdict.ERROR, Verdict.FAIL, Verdict.FIXED, Verdict.WARN, Verdict.INCONCLUSIVE)


def render(document: Json) -> str:
    script, style = asset("report.js"), asset("report.css")
    page = environment().get_template("report.html.j2")
    return page.render(
        doc=document,
        script=Markup(script),  # noqa: S704 - this package's own file
        style=Markup(style),  # noqa: S704 - this package's own file
        policy=policy(style, script),
        island=island(document),
        specs=list(_specs(document)),
        checks={check["check"]: check for check in document["checks"]},
        verdicts=[verdict for verdict in reversed(Verdict) if document["summary"][verdict]],
        levels=list(dict.fromkeys(row["level"] for row in document["requirements"])),
        attention=[
            row
            for verdict in ATTENTION
            for row in told_one_by_one(document["requirements"])
            if row["verdict"] == verdict
        ],
        audit=list(_flat(document["audit"])),
        **_matrix(document),
    ).lstrip()


def policy(style: str, script: str = "") -> str:
    """Returns the content security policy of a page with this style, and with this script or none."""
    own = f" script-src '{_hash(script)}';" if script else ""
    return f"default-src 'none';{own} style-src '{_hash(style)}'; base-uri 'none'"


def _matrix(document: Json) -> Json:
    """Returns what the page shows of a run of mutants; empty lists for any other run."""
    mutants = document["mutants"]
    return {
        "looks": LOOKS,
        "statuses": [status for status in LOOKS if any(mutant["status"] == status for mutant in mutants)],
        "mutant_groups": list(_mutant_groups(mutants)),
        "open_mutants": [mutant for mutant in mutants if mutant["status"] in {"survived", "not-judged"}],
        "alarms": document["checks"] if document["summary"]["mutants"] else [],
        "looked_beyond": any(mutant["also"] is not None for mutant in mutants),
    }


def _mutant_groups(mutants: list[Json]) -> Iterator[tuple[str, list[Json], int]]:
    for group in dict.fromkeys(group_of_mutant(mutant) for mutant in mutants):
        mine = [mutant for mutant in mutants if group_of_mutant(mutant) == group]
        yield group, mine, sum(mutant["status"] == "killed" for mutant in mine)


def island(document: Json) -> Markup:
    """Returns the results as data for the page. No `<` is left in it, so nothing can end the script element."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704 - every character with a meaning in HTML was just replaced


def tightest(row: Json) -> Json | None:
    """Returns the timing with the least room left: a slower target would miss it first."""
    known = [timing for timing in row["timings"] if timing.get("margin") is not None]
    return min(known, key=lambda timing: float(timing["margin"]), default=None)


def web_link(url: str | None) -> str | None:
    """Returns a link of the descriptor if it is safe to click; None for `javascript:` and the like."""
    return url if url and url.startswith(("https://", "http://")) else None


@cache
def environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "seconds": seconds,
        "interval": interval_text,
        "detail": detail_text,
        "known": known_text,
        "link": web_link,
        "beyond": reason_beyond,
    }
    environment.globals |= {
        "signs": SIGNS,
        "count": count,
        "meter": meter,
        "look": look,
        "timeline": timeline,
        "story": story,
        "tightest": tightest,
        "reconciliation": reconciliation_line,
        "outcome": outcome_line,
        "blocked_line": blocked_line,
        "citation": citation,
        "sentence": sentence_of,
    }
    return environment


@cache
def asset(name: str) -> str:
    return (_TEMPLATES / name).read_text("utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _specs(document: Json) -> Iterator[tuple[str, list[tuple[str, list[Json]]]]]:
    rows = document["requirements"]
    for spec in dict.fromkeys(row["spec"] for row in rows):
        mine = [row for row in rows if row["spec"] == spec]
        groups = dict.fromkeys(group_of(row["id"]) for row in mine)
        yield spec, [(group, [row for row in mine if group_of(row["id"]) == group]) for group in groups]


def _flat(values: Json, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the numbers of the audit with their names: `loop_lag_ms p99`, 18.2."""
    for key, value in values.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flat(value, f"{name} ")
        elif isinstance(value, list):
            yield name, "; ".join(map(_short, value)) or "none"
        else:
            yield name, _short(value)


def _short(value: Any) -> str:
    match value:
        case float():
            return f"{value:.4g}"
        case dict():
            return ", ".join(f"{key} {_short(item)}" for key, item in value.items())
        case None:
            return "–"
        case _:
            return str(value)
