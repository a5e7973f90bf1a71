"""What a stranger gets wrong, or leaves out, is told as such: in one sentence, or beside the exit code."""

from pathlib import Path

import pytest

from tests.product.hopeless import fails_at_everything, listening
from tests.product.running import holdfast, run

LOCKD = """
[target]
name = "mine"
spec = "lockd"
[[node]]
name = "a"
urls = {{ https = "{url}" }}
[credentials]
ca = "{ca}"
"""


@pytest.mark.parametrize("command", ["run", "chaos"])
def test_a_certificate_that_is_not_there_is_one_sentence(tmp_path: Path, command: str) -> None:
    path = tmp_path / "mine.toml"
    with listening(fails_at_everything) as url:
        path.write_text(LOCKD.format(url=url.replace("http", "https"), ca=tmp_path / "none.pem"))
        ended = holdfast(tmp_path, command, "lockd", "--target", str(path), "--results", "results")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        f"holdfast: [credentials] ca: {tmp_path / 'none.pem'} can't be read (No such file or directory); "
        f"mend it in {path}\n"
    )


def test_a_budget_that_leaves_checks_of_a_row_out_makes_no_pass(tmp_path: Path) -> None:
    ended = run(tmp_path, "--budget", "4s", only=("AD-RATE-03",))
    assert ended.code == 0, ended.text
    assert ended.verdicts() == {"AD-RATE-03": "partial"}
    assert "1 partial: exit 0, narrowed: --only AD-RATE-03, --budget 4s" in ended.out
    assert "left out (over the budget of 4 s)" in ended.results()["requirements"][0]["reason"]


def test_what_nobody_can_observe_is_not_green_unless_it_is_not_offered(tmp_path: Path) -> None:
    descriptor = holdfast(tmp_path, "init", "admission").out.replace('"env:', '"')
    blind = tmp_path / "blind.toml"
    with listening(fails_at_everything) as url:
        profile = descriptor.replace('# profile = "wire"', 'profile = "store"').replace("http://127.0.0.1:3000", url)
        blind.write_text(profile)
        ended = run(tmp_path, "--target", str(blind), only=("AD-OBS-01",))
        assert (ended.code, ended.verdicts()) == (2, {"AD-OBS-01": "not-observable"})
        assert ended.out.count("blocked by: no [observe] events (1 row)") == 1
        blind.write_text(profile.replace("[not_offered]", '[not_offered]\nevents = "they go elsewhere"'))
        ended = run(tmp_path, "--target", str(blind), only=("AD-OBS-01",))
        assert (ended.code, ended.verdicts()) == (0, {"AD-OBS-01": "not-applicable"})
