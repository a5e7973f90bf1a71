"""A finding as text: the requirement, what was expected and seen, how it came about, how to repeat it.

Terminal, JUnit, CTRF and Allure all show this one rendering; only the HTML report draws its own.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from holdfast.check.timeline import Judgement
from holdfast.reports.text import Json, between, count, cut, seconds, visible, visible_lines

WIDTH = 110
_LABEL = 10
_OPENING, _CLOSING = 5, 9


def render_finding(
    rows: Sequence[Mapping[str, Any]], found: Mapping[str, Any], width: int = WIDTH, *, whole: bool = False
) -> str:
    """Returns the finding of one check: `rows` are those it verifies, `found` an attempt or a finding.

    A long transcript is shortened to its beginning and its end, and its lines to `width`; `whole` keeps all of it: a
    file has room, and the field that decides may be the last one of a long line.
    """
    lines = [line for row in rows for line in _heading(row, found, width, whole=whole)]
    if not rows:
        lines.append(between(found.get("title") or found.get("check", ""), verdict_text(found), width))
    lines += _body(found, width)
    lines += transcript_lines(found, width, whole=whole)
    if found.get("command"):
        lines.append(f"  {'repeat':<{_LABEL}}{visible(found['command'])}")
    return "\n".join(lines)


def verdict_text(found: Mapping[str, Any]) -> str:
    kind = found.get("kind")
    return f"{found['verdict']} ({kind})" if kind == "absent" else str(found["verdict"])


def _heading(row: Mapping[str, Any], found: Mapping[str, Any], width: int, *, whole: bool = False) -> Iterator[str]:
    named = visible(f"{row['id']}  {row['level']}  {row['title']}")
    text, section = "  " + visible(row.get("text", "")), visible(row.get("section", ""))
    if whole:
        yield from (f"{named}  {verdict_text(found)}", f"{text}  ({section})" if section else text)
    else:
        yield from (between(named, verdict_text(found), width), between(text, section, width))
    if cited := citation(row):
        yield from _labelled("rests on", cited, width)


def citation(row: Mapping[str, Any]) -> str:
    """Returns where the requirement is stated: the lines, and the document that they are lines of; empty if unknown.

    A row that its document does not state word for word says so: it follows from these lines.
    """
    lines, document = row.get("lines") or "", row.get("document") or {}
    if not lines:
        return ""
    word = "lines" if "," in lines or "-" in lines else "line"
    place = " ".join(filter(None, [document.get("repository"), document.get("path")]))
    named = ", ".join(filter(None, [document.get("title"), place])) or "the document"
    follows = f" ({row['origin']}: it follows from them)" if row.get("origin") not in (None, "", "seed") else ""
    return visible(f"{word} {lines} of {named}{follows}")


def _body(found: Mapping[str, Any], width: int) -> Iterator[str]:
    for number, legal in enumerate(found.get("expected", [])):
        yield from _labelled("or" if number else "expected", visible(legal), width)
    if found.get("seen") is not None:
        yield from _labelled("seen", visible(found["seen"]), width)
    for number, line in enumerate((found.get("walk") or {}).get("story", [])):
        yield from _labelled("" if number else "walk", visible(line), width)
    if why := reason_beyond(found):
        yield from _labelled("reason", visible_lines(why), width)
    for other in found.get("further", []):
        yield from _labelled("also", visible_lines(other), width)
    for timing in found.get("timings", []):
        if timing.get("verdict") not in {None, Judgement.HOLDS}:
            yield from _labelled("timing", timing_text(timing), width)
    for warning in found.get("warnings", []):
        yield from _labelled("warning", visible(warning), width)
    if known := found.get("known"):
        yield from _labelled("known", known_text(known), width)


def reason_beyond(found: Mapping[str, Any]) -> str:
    """Returns what the reason says beyond expected, seen and known."""
    reason = str(found.get("reason") or "")
    expected, seen = found.get("expected") or [], found.get("seen")
    if reason == seen:
        return ""
    both = f"expected {' or '.join(expected)}; seen {seen}"
    if not expected or both not in reason:
        return reason
    rest = reason.replace(both, "").strip(" :()")
    return "" if rest == (found.get("known") or {}).get("reason") else rest


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    """Yields the text under a label; further lines are indented, so that no answer of a target looks like a label."""
    room = max(width - 2 - _LABEL, 20)
    pieces = [piece for line in text.split("\n") for piece in _wrapped(line, room)]
    for number, piece in enumerate(pieces):
        yield f"  {label if number == 0 else '':<{_LABEL}}{piece}".rstrip()


def _wrapped(text: str, room: int) -> Iterator[str]:
    while len(text) > 4 * room or cell_len(text) > room:
        # A word may be longer than the line (a token, a JSON body): then it is cut where the line ends.
        fits = cut(text, room + 1).removesuffix("…")
        at = fits.rfind(" ")
        piece = fits[:at] if at > room // 2 else fits[:room]
        yield piece
        text = text[len(piece) :].lstrip(" ")
    yield text


def known_text(known: Mapping[str, Any]) -> str:
    said = [known.get("reason") or "listed as a known failure"]
    said += [f"see {known['link']}"] if known.get("link") else []
    said += [f"expires {known['expires']}"] if known.get("expires") else []
    return visible(", ".join(said))


def timing_text(timing: Mapping[str, Any]) -> str:
    text = f"{timing.get('name', '')} ({timing.get('kind', '')}): budget {seconds(timing.get('budget_s'))}"
    if timing.get("tolerance_s"):
        text += f" ± {seconds(timing['tolerance_s'])}"
    text += f", observed {interval_text(timing.get('observed_s'))}"
    text += f" ({timing['verdict']})" if timing.get("verdict") else ""
    return visible(f"{text}; {timing['note']}" if timing.get("note") else text)


def interval_text(observed: Sequence[float | None] | None) -> str:
    """Returns the interval to the millisecond: rounded like a duration, its two ends would often look the same."""
    low, high = (observed or [None, None])[:2]
    if low is None and high is None:
        return "nothing"
    if high is None:
        return f"not by {low:.3f} s"
    return f"by {high:.3f} s" if low is None else f"{low:.3f} to {high:.3f} s"


def transcript_lines(found: Mapping[str, Any], width: int = WIDTH, *, whole: bool = False) -> list[str]:
    """Returns the exchange with relative seconds; a request and the reply after it share a line where they fit."""
    lines = list(_exchange(found.get("transcript", []), width, whole=whole))
    if dropped := found.get("transcript_dropped", 0):
        lines.append(f"     ({count(dropped, 'entry') if dropped == 1 else f'{dropped} entries'} dropped)")
    hidden = len(lines) - _OPENING - _CLOSING
    if whole or hidden <= 1:
        return lines
    return [*lines[:_OPENING], f"     … {hidden} more lines in the report", *lines[-_CLOSING:]]


def _exchange(transcript: Sequence[Json], width: int, *, whole: bool) -> Iterator[str]:
    entries = list(transcript)
    while entries:
        first = entries.pop(0)
        line = f"{_clock(first)}  {_entry(first)}"
        if first.get("dir") == "→" and entries and entries[0].get("dir") == "←":
            reply = _entry(entries[0])
            joined = f"{line:<66}  {reply}" if cell_len(line) <= 66 else f"{line}  {reply}"
            if cell_len(joined) <= width:
                entries.pop(0)
                line = joined
        yield line if whole else cut(line, width)


def _clock(entry: Json) -> str:
    return f"{entry.get('t', 0.0) / 1000:+.3f}".rjust(11)


def _entry(entry: Json) -> str:
    text = visible(f"{entry.get('dir', '·')} {entry.get('text', '')}")
    detail = entry.get("detail")
    return f"{text}  {detail_text(detail)}" if detail else text


def detail_text(detail: Any) -> str:
    return visible(detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False))
