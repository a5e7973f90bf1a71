"""The report for reviewers: one HTML file that needs no network, no server and no script to be read.

Jinja escapes every value. Should that ever miss one, the content security policy still forbids every script and
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

from holdfast.reports.finding import detail_text, interval_text, known_text, reason_beyond
from holdfast.reports.picture import look, meter, story, timeline
from holdfast.reports.summary import group_of, outcome_line, reconciliation_line
from holdfast.reports.text import Json, count, seconds
from holdfast.verdict import Verdict

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
ATTENTION = (Verdict.ERROR, Verdict.FAIL, Verdict.FIXED, Verdict.WARN, Verdict.INCONCLUSIVE)


def render(document: Json) -> str:
    script, style = _asset("report.js"), _asset("report.css")
    page = _environment().get_template("report.html.j2")
    return page.render(
        doc=document,
        script=Markup(script),  # noqa: S704 - our own file
        style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'",
        island=island(document),
        specs=list(_specs(document)),
        checks={check["check"]: check for check in document["checks"]},
        verdicts=[verdict for verdict in reversed(Verdict) if document["summary"][verdict]],
        levels=list(dict.fromkeys(row["level"] for row in document["requirements"])),
        attention=[row for verdict in ATTENTION for row in document["requirements"] if row["verdict"] == verdict],
        audit=list(_flat(document["audit"])),
    ).lstrip()


def island(document: Json) -> Markup:
    """The results as data inside the page. No `<` is left, so nothing in it can end the script element."""
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    safe = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Markup(safe)  # noqa: S704 - every character with a meaning in HTML was just replaced


def tightest(row: Json) -> Json | None:
    """The timing with the least room left; it is the first that a slower day would break."""
    known = [timing for timing in row["timings"] if timing.get("margin") is not None]
    return min(known, key=lambda timing: float(timing["margin"]), default=None)


def web_link(url: str | None) -> str | None:
    """A link of the descriptor, if it is one that may be clicked; `javascript:` and the like stay text."""
    return url if url and url.startswith(("https://", "http://")) else None


@cache
def _environment() -> Environment:
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
    }
    return environment


@cache
def _asset(name: str) -> str:
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
    """The free-form numbers of the audit, one line each: `loop_lag_ms p99`, 18.2."""
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
