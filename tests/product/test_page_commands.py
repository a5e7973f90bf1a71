"""What README and the guides tell people to type does what they say, as far as it is quick to try.

Whole runs, `tox` and chaos are too long for a test of a page; tests/test_pages.py checks their options and names.
"""

import json
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.fixtures.ports import PortPool
from tests.pages import ROOT, Command, commands_of, spoken
from tests.product.running import holdfast, started
from tests.product.test_serve import served

README, YOUR_SERVER, RELAY = (
    ROOT / "README.md",
    ROOT / "docs" / "guide-your-server.md",
    ROOT / "docs" / "guide-relay.md",
)


def about(page: Path, file: str) -> list[Command]:
    """The commands of `holdfast` that name this file."""
    return [each for each in commands_of(page) if each.words[0] == "holdfast" and file in each.words]


def test_the_five_minutes_to_the_first_verdicts(tmp_path: Path) -> None:
    init, doctor, run = about(README, "mine.toml")
    assert [each.words for each in about(YOUR_SERVER, "mine.toml")] == [init.words, doctor.words, run.words]

    assert holdfast(tmp_path, *init.words[1:]).code == 0
    with served(tmp_path, "--nodes", "1") as descriptor:
        (tmp_path / "mine.toml").write_text(Path(descriptor).read_text())  # now it is filled in
        assert holdfast(tmp_path, *doctor.words[1:]).code == 0
        ended = holdfast(tmp_path, *run.words[1:], "--only", "AD-VER-01")
    # One check wants another build, which a server that somebody else has started can't be given.
    assert "1 partial: exit 0" in ended.text


def prints(words: tuple[str, ...]) -> bool:
    return words == ("holdfast", "requirements") or (words[:2] == ("holdfast", "explain") and len(words) > 2)


@pytest.mark.parametrize("words", sorted({each.words for each in spoken() if prints(each.words)}), ids=" ".join)
def test_what_only_prints_prints(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert holdfast(tmp_path, *words[1:]).code == 0


def free_ports(page: Path, pool: PortPool) -> dict[str, str]:
    """For every port that the page's commands name another one, that is free and that no other test takes."""
    found = sorted({port for each in commands_of(page) for port in re.findall(r":(\d{4})\b", " ".join(each.words))})
    return {port: str(pool.take()) for port in found}


def answer(words: list[str]) -> str:
    """What `curl` would print; it need not be installed."""
    options, url = dict(zip(words[1::2], words[2::2], strict=False)), words[-1]
    data = options.get("-d", "" if options.get("-X") == "POST" else None)
    request = urllib.request.Request(f"http://{url}", data=data.encode() if data is not None else None)
    with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - loopback
        text: str = response.read().decode()
    return text


@pytest.fixture
def pool() -> Iterator[PortPool]:
    with PortPool() as ports:
        yield ports


def test_the_relay_guide_from_its_first_command_to_its_last(tmp_path: Path, pool: PortPool) -> None:
    ports = free_ports(RELAY, pool)

    def here(text: str) -> str:
        return re.sub(r"\b\d{4}\b", lambda match: ports.get(match[0], match[0]), text)

    relay, *calls = commands_of(RELAY)
    with started(tmp_path, *(here(word) for word in relay.words[1:])) as process:
        assert process.stdout is not None
        assert here(process.stdout.readline().strip()) in here(RELAY.read_text())
        answers = [answer([here(word) for word in each.words]) for each in calls]
    redis, latency, loss, counters, _ = [json.loads(text or "{}") for text in answers]
    assert (redis["name"], latency["type"], loss["type"]) == ("redis", "latency", "packet_loss")
    assert {"upstream", "downstream", "connections"} <= set(counters)
