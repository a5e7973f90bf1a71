import io
from collections.abc import Iterable
from typing import Literal

import pytest
from rich.cells import cell_len
from rich.console import Console

from holdfast.reports.finding import WIDTH, render_finding, transcript_lines
from holdfast.reports.terminal import Terminal
from holdfast.reports.text import as_json, between, cut, seconds, visible
from holdfast.run.events import Alone, CheckWaiting, Event, RunWaiting
from tests.reports.streams import (
    EVIDENCE,
    RATE,
    STATE,
    begun,
    ended,
    finished,
    hostile_run,
    part,
    plan,
    row,
    small_run,
    started,
)

SMALL_RUN = """\
holdfast 0.1.0  admission  target mine 2.3  profile control  time scale 0.2  seed 7
plan: 4 requirements, 3 checks, 24 at a time, 0 faults, about 20.0 s
  fail          AD-RATE-03      a burst across a window border is locked  6.1 s

AD-RATE-03  MUST  The 60 s window truly rolls                                                             fail
  Every failure counts for exactly 60 s and leaves the window on its own.                seed §3 Rate Limiting
  rests on  lines 30-31 of the document
  expected  429 RATE_LIMITED on the 6th attempt (5 failures within 6.1 s)
  or        503 during an outage
  seen      200 success
  timing    rate_window (seed): budget 12.0 s ± 400 ms, observed 13.100 to 13.200 s (missed)
     +0.000  → POST /instances/i1/connect  clientBuild=stale        ← 200 failed VERSION_MISMATCH  remaining 4
     +0.080  ! link redis cut  {"bytes": 312}
     +6.087  → POST /instances/i1/connect  clientBuild=dev-build    ← 200 success
  repeat    holdfast run admission --only AD-RATE-03 --target mine.toml

  pass          AD-STATE-01     a second node sees the same queue  6.1 s
  inconclusive  AD-DRAIN-02     drain  6.1 s  (tried once more)
  pass          AD-DRAIN-02     a drain ends in time  85 ms

group     rows  pass  not-observable  partial  fail
AD-RATE      1     ·               ·        ·     1
AD-STATE     1     ·               ·        1     ·
AD-DRAIN     1     1               ·        ·     ·
AD-CLOCK     1     ·               1        ·     ·
all          4     1               1        1     1

fail            AD-RATE-03    The 60 s window truly rolls
                              seen 200 success
partial         AD-STATE-01   Live state is shared
                              part 2 not looked at: needs multi_node; would be seen with a second [[node]]
blocked by: no [settings] clock_offset (1 row)
  needs clock
  AD-CLOCK-01

4 rows planned, 3 decided; 3 checks planned, 3 finished
wall 7.0 s (planned 20.0 s), checks 18.4 s in all, longest 6.1 s: test_a_burst_across_a_window_border_is_lock…
1 pass · 1 not-observable · 1 partial · 1 fail: exit 1
"""


def shown(events: Iterable[Event], *, on_a_terminal: bool = False) -> str:
    out = io.StringIO()
    colours: Literal["standard"] | None = "standard" if on_a_terminal else None
    console = Console(file=out, width=110, force_terminal=on_a_terminal, color_system=colours)
    terminal = Terminal(console, live=on_a_terminal)
    for event in events:
        terminal.handle(event)
    terminal.close()
    return out.getvalue()


def test_plain_output_of_a_small_run() -> None:
    assert shown(small_run()) == SMALL_RUN


def test_hostile_text_never_reaches_the_terminal_as_it_came() -> None:
    text = shown(hostile_run())
    assert all(char.isprintable() or char == "\n" for char in text)
    assert r"\x1b[31mred" in text
    assert "[bold]loud[/bold]" in text


def test_a_target_cannot_pose_as_one_of_our_labels() -> None:
    text = render_finding([], {"verdict": "fail", "seen": "200\n  repeat    rm -rf /", "reason": "a\nrepeat x"})
    assert r"200\x0a  repeat    rm -rf /" in text
    assert "\n            repeat x" in text


def test_a_reason_that_only_repeats_expected_and_seen_is_not_printed_again() -> None:
    found = {"verdict": "fail", "expected": ["429", "503"], "seen": "200"}
    assert "reason" not in render_finding([], {**found, "reason": "expected 429 or 503; seen 200"})
    assert "reason    the lock was in force" in render_finding(
        [], {**found, "reason": "expected 429 or 503; seen 200 (the lock was in force)"}
    )
    known = {"reason": "pending", "link": None, "expires": None}
    text = render_finding([], {**found, "reason": "pending: expected 429 or 503; seen 200", "known": known})
    assert text.count("pending") == 1


def test_a_repeated_finding_is_printed_once() -> None:
    runs = [finished(RATE, "fail", ("AD-RATE-03", 1), repeat=repeat, **EVIDENCE) for repeat in (1, 2, 3)]
    text = shown([started(repeat=3), plan(row("AD-RATE-03", part(1, [RATE]))), *runs, ended(1)])
    assert text.count("  fail          AD-RATE-03") == 3
    assert text.count("  expected  429") == 1


def test_a_finding_names_every_requirement_that_the_check_verifies() -> None:
    rows = [row("AD-RATE-03", part(1, [RATE])), row("AD-RATE-04", part(1, [RATE]), title="Failures count per user")]
    check = finished(RATE, "fail", ("AD-RATE-03", 1), ("AD-RATE-04", 1), **EVIDENCE)
    text = shown([started(), plan(*rows), check, ended(1)])
    assert "  fail          AD-RATE-03 +1 " in text
    assert "\nAD-RATE-03  MUST  The 60 s window truly rolls" in text
    assert "\nAD-RATE-04  MUST  Failures count per user" in text


def test_a_killed_run_names_what_is_missing() -> None:
    text = shown([started(), plan(row("AD-RATE-03", part(1, [RATE]))), begun(RATE), ended(130, interrupted="SIGINT")])
    assert f"missing     {RATE}" in text
    assert text.endswith("1 inconclusive: exit 130\n")


def test_an_output_that_knows_only_ascii_gets_escapes_instead_of_an_error() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii", write_through=True)
    terminal = Terminal(Console(file=out, width=110, highlight=False))
    for event in small_run():
        terminal.handle(event)
    assert rb"\u2192 POST" in raw.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b[1;31m" in shown(small_run(), on_a_terminal=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "31m" not in shown(small_run(), on_a_terminal=True)


def screen(events: Iterable[Event], now: float, width: int = 100) -> str:
    """What the live part shows at `now`, without the thread that would redraw it."""
    clock = iter([0.0, 0.0])
    terminal = Terminal(Console(file=io.StringIO()), live=False, clock=lambda: next(clock, now))
    for event in events:
        terminal.handle(event)
    out = io.StringIO()
    Console(file=out, width=width).print(terminal._progress)
    return out.getvalue()


def test_the_live_screen_shows_what_each_check_waits_for() -> None:
    waiting = CheckWaiting(at=2.0, check=RATE, waiting_for="the window to roll", until_s=7.0)
    text = screen(
        [
            started(),
            plan(row("AD-RATE-03", part(1, [RATE])), row("AD-STATE-01", part(1, [STATE]))),
            begun(RATE, at=1.0, planned_s=12.0),
            waiting,
            finished(STATE, "fail", ("AD-STATE-01", 1)),
        ],
        now=4.0,
    )
    assert "1/2 checks, 1 not green" in text
    assert "4.0 s of about 20.0 s" in text
    assert "AD-RATE-03" in text
    assert "the window to roll" in text
    assert "5.0 s left" in text
    assert "3.0 s / 12.0 s" in text


SETTLING = RunWaiting(at=3.0, waiting_for="the target to forget the checks so far", for_s=15.2)


def test_a_wait_of_the_whole_run_counts_down_on_the_live_screen_until_a_check_starts() -> None:
    events = [started(), plan(row("AD-RATE-03", part(1, [RATE]))), SETTLING]
    assert "  14.2 s left: the target to forget the checks so far" in screen(events, now=4.0)
    assert "to forget" not in screen([*events, begun(RATE, at=18.2)], now=19.0)


def test_a_wait_of_the_whole_run_is_a_line_of_the_log_and_in_the_plan() -> None:
    planned = plan(row("AD-RATE-03", part(1, [RATE])), alone=Alone(1, 15.2))
    text = shown([started(), planned, SETTLING, begun(RATE), finished(RATE), ended(0)])
    assert "plan: 1 requirement, 1 check, 24 at a time, 1 of them alone after settling for 15.2 s, 0 faults" in text
    assert "\nwaiting 15.2 s for the target to forget the checks so far\n  pass " in text
    assert "(planned 20.0 s), stood still 15.2 s, checks" in text


def test_a_target_that_is_slow_to_start_is_told_before_the_run_begins() -> None:
    slow = RunWaiting(waiting_for="mine to be ready")
    text = shown([slow, *small_run()])
    assert text == f"waiting for mine to be ready\n{SMALL_RUN}"


def test_the_live_screen_shows_eight_checks_and_counts_the_rest() -> None:
    checks = [f"test_x.py::test_number_{n}" for n in range(11)]
    text = screen([started(), plan(row("AD-RATE-03", part(1, checks))), *map(begun, checks)], now=1.0)
    assert text.count("AD-RATE-03") == 8
    assert "and 3 more" in text


def test_the_live_screen_fits_a_narrow_terminal() -> None:
    long = CheckWaiting(check=RATE, waiting_for="ф" * 300)
    text = screen([started(), plan(row("AD-RATE-03", part(1, [RATE]))), begun(RATE), long], now=1.0, width=40)
    assert all(cell_len(line) <= 40 for line in text.splitlines())


def test_live_and_plain_end_with_the_same_summary() -> None:
    live = shown(small_run(), on_a_terminal=True)
    assert live.endswith("1 pass · 1 not-observable · 1 partial · 1 fail: exit 1\n")
    assert "a second node sees the same queue" not in live, "on a terminal only what is not green is listed"


@pytest.mark.parametrize("width", [40, 80, 110])
def test_no_line_of_a_finding_is_wider_than_asked_except_what_is_to_be_copied(width: int) -> None:
    wide = {**as_json(EVIDENCE), "verdict": "fail", "seen": "字" * 200, "reason": "word " * 60}
    lines = render_finding([as_json(row("AD-RATE-03", title="x" * 200, text="字" * 200))], wide, width).splitlines()
    assert max(map(cell_len, lines)) <= width


def test_a_long_transcript_keeps_its_beginning_and_its_end() -> None:
    transcript = [{"t": float(n), "dir": "·", "text": f"step {n}"} for n in range(40)]
    lines = transcript_lines({"transcript": transcript, "transcript_dropped": 2})
    assert len(lines) == 15
    assert lines[5] == "     … 27 more lines in the report"
    assert lines[-1] == "     (2 entries dropped)"
    assert len(transcript_lines({"transcript": transcript}, whole=True)) == 40


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0 s"),
        (0.0854, "85 ms"),
        (0.9999, "1.0 s"),
        (6.14, "6.1 s"),
        (99.96, "1 m 40 s"),
        (None, "–"),
        (-2, "−2.0 s"),
    ],
)
def test_seconds_read_as_people_say_them(value: float | None, text: str) -> None:
    assert seconds(value) == text


def test_unprintable_characters_are_written_out() -> None:
    assert visible("a\x1b\u200b\U000e0001\ud800é字") == r"a\x1b\u200b\U000e0001\ud800é字"


def test_texts_are_cut_by_cells_not_by_characters() -> None:
    assert cut("字字字字", 5) == "字字…"
    assert cell_len(between("left " * 50, "right", WIDTH)) == WIDTH
