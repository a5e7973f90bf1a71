"""Targets that can't be worked with get a complete report in bounded time, and never a traceback of Holdfast."""

import re
import socket
import time
from pathlib import Path

import pytest

from tests.product.hopeless import Answer, answers_a_byte_a_second, fails_at_everything, listening, never_answers
from tests.product.running import run

# More checks than overlap at once, some of which want the target for themselves, and a wait of a rate window.
GROUPS = ("AD-RATE", "AD-ADMIT", "AD-VER")
WAITED = re.compile(r"(no answer \(?|without an answer when the check gave up )after \d")
DESCRIPTOR = """
[target]
name = "hopeless"
spec = "admission"
profile = "wire"
time_scale = 0.2
[[node]]
name = "a"
urls = {{ http = "{url}" }}
[credentials]
auth_secret = "a secret"
admin_token = "a token"
"""


def describe(folder: Path, url: str) -> str:
    path = folder / "hopeless.toml"
    path.write_text(DESCRIPTOR.format(url=url))
    return str(path)


def test_where_nothing_listens_one_sentence_says_so(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening, so that no other process does
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        began = time.monotonic()
        ended = run(tmp_path, "--target", describe(tmp_path, url), only=GROUPS)
    assert time.monotonic() - began < 10
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"holdfast: nothing listens at {url}: start hopeless, or mend [[node]] urls in {tmp_path / 'hopeless.toml'}\n"
    )


@pytest.mark.parametrize("answer", [fails_at_everything, never_answers, answers_a_byte_a_second])
def test_a_target_that_answers_nothing_of_use_fails_every_row_in_time(tmp_path: Path, answer: Answer) -> None:
    with listening(answer) as url:
        ended = run(tmp_path, "--target", describe(tmp_path, url), only=GROUPS)
    assert (ended.code, ended.err) == (1, "")
    results = ended.results()
    assert len(results["checks"]) > results["plan"]["overlap"], "else nothing had to wait for a slot"
    # Inconclusive: a row whose check could not be arranged; the row that owns the step has failed.
    assert set(ended.verdicts().values()) <= {"fail", "warn", "inconclusive", "not-applicable", "not-observable"}
    assert "fail" in ended.verdicts().values()
    assert results["plan"]["reconciliation"]["agrees"]
    assert "Traceback" not in ended.text + (tmp_path / "results" / "results.json").read_text()
    # What a healthy target needs at least is the planned waiting of the longest check.
    assert results["wall_s"] <= 3 * results["planned"]["longest_check"]["planned_s"]


def test_a_finding_about_a_silent_target_says_how_long_it_was_waited_for(tmp_path: Path) -> None:
    with listening(never_answers) as url:
        ended = run(tmp_path, "--target", describe(tmp_path, url), only=("AD-ADMIT-01",))
    (row,) = ended.results()["requirements"]
    assert row["verdict"] in (
        "fail",
        "inconclusive",
    )  # inconclusive if it was silent before there was anything to judge
    assert WAITED.search(ended.out)
