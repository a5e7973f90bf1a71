"""Values of a descriptor: what the schema can not know is compared with the catalogue and the built-in target."""

import re
from pathlib import Path

import pytest

from holdfast.target.descriptor import TargetError, load
from holdfast.target.values import url_problem

ADMISSION = """
[target]
name = "mine"
spec = "admission"
[[node]]
name = "a"
urls = { http = "http://127.0.0.1:3000" }
[credentials]
auth_secret = "secret"
"""


def told(folder: Path, text: str) -> str:
    (folder / "mine.toml").write_text(text)
    with pytest.raises(TargetError) as refused:
        load(folder / "mine.toml")
    lines = str(refused.value).splitlines()
    assert len(lines) == 1, lines
    return lines[0].removeprefix(f"{folder / 'mine.toml'}: ")


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("{ http =", "{ htp =", "[[node]] a urls htp: no check uses such a URL; did you mean 'http'?"),
        ('"http://127.0.0.1:3000"', "3000", '[[node]] a urls http: must be text, e.g. http = "http://127.0.0.1:3000"'),
        ("http://127", "127", "[[node]] a urls http: '127.0.0.1:3000' has no scheme; write it like"),
        ("http://127", "https://127", "[[node]] a urls http: 'https://127.0.0.1:3000' is no http URL; write https ="),
        (":3000", ":99999", "[[node]] a urls http: 'http://127.0.0.1:99999' is no URL (Port out of range 0-65535)"),
        ("127.0.0.1:3000", "", "[[node]] a urls http: 'http://' names no host"),
        ('name = "a"', "names = [1]", "[[node]] 1 names: must be names"),
        ('name = "a"', 'name = "a"\nstart = ""', "[[node]] a start: empty; write the command that starts the node"),
        ('name = "a"', 'name = "a"\nstart = "sh \'x"', "is no command (No closing quotation)"),
        ("auth_secret", "auth_sekret", "[credentials] auth_sekret: no such key; did you mean 'auth_secret'?"),
    ],
)
def test_a_wrong_value_is_one_sentence_with_its_key(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert sentence in told(tmp_path, ADMISSION.replace(old, new))


@pytest.mark.parametrize(
    ("section", "sentence"),
    [
        ('[timings]\ngrase = "30s"', "[timings] grase: no such timing of admission; did you mean 'grace'?"),
        ("[timings]\ngrace = 30", '[timings] grace: 30 is no duration; write grace = "30s"'),
        ("[limits]\nqueue_kap = 3", "[limits] queue_kap: no such limit of admission; did you mean 'queue_cap'?"),
        ('[limits]\nqueue_cap = "3"', "[limits] queue_cap: '3' is no number; write queue_cap = "),
        ("[scaled]\nlimits = { queue_kap = 3 }", "[scaled] limits queue_kap: no such limit of admission"),
        ('[settings]\ngrase = { env = "G" }', "[settings] grase: no such setting of admission; did you mean 'grace'?"),
        ("[dialect]\nqueues = false", "[dialect] queues: no such key; did you mean 'queue'?"),
        ('[dialect]\nqueue = "no"', "[dialect] queue: must be boolean"),
        ('[dialect]\nname = "contrakt"', "[dialect] name: 'contrakt' is none of 'contract', 'tilemud-code'"),
        ('[observe]\nredis = "127.0.0.1:6379"', "[observe] redis: '127.0.0.1:6379' is no such URL; write it"),
        ('[observe]\nevents = "stdout"', '[observe] events: "stdout" is that of nodes which Holdfast starts'),
        ('[links]\ntoxiproxy = "here"', "[links] toxiproxy: 'here' is no such URL; write it like http"),
        (
            '[known_failures]\n"AD-RAT-03" = { reason = "x" }',
            "[known_failures] AD-RAT-03: no requirement of admission; did you mean 'AD-RATE-03'?",
        ),
        ('[known_failures]\n"AD-RATE-03#9" = { reason = "x" }', "no such part; see holdfast explain AD-RATE-03"),
        ('[known_failures]\n"AD-RATE-03#x" = { reason = "x" }', "there is no such part"),
        ('[known_failures]\n"AD-RATE-03" = { reason = "x", expire = 1 }', "expire: no such key; did you mean"),
        (
            '[known_failures]\n"AD-RATE-03" = { reason = "x", expires = "2027-01-31" }',
            "expires: 2027-01-31 is no date; write expires = 2027-01-31, without quotes",
        ),
        ('[not_offered]\n"AD-QUEU" = "x"', "no requirement or group of admission; did you mean 'AD-QUEUE'?"),
    ],
)
def test_an_unknown_name_is_told_with_the_nearest(tmp_path: Path, section: str, sentence: str) -> None:
    assert sentence in told(tmp_path, f"{ADMISSION}{section}\n")


def test_what_a_check_may_know_is_left_alone(tmp_path: Path) -> None:
    more = '[settings]\nsomething_else = { env = "S" }\ngraced = { env = "G", default = "1" }\n'
    (tmp_path / "mine.toml").write_text(ADMISSION.replace("urls = {", 'urls = { ops = "http://h:1",') + more)
    assert load(tmp_path / "mine.toml").nodes[0].urls["ops"] == "http://h:1"


def test_placeholders_are_no_part_of_a_url() -> None:
    assert url_problem("http://127.0.0.1:{port}") == ""
    assert url_problem("https://{host}:{port.tls}/x") == ""
    assert re.match(r"'\{host\}:1' has no scheme", url_problem("{host}:1"))
