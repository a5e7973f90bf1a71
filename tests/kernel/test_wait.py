"""`--wait`: a target that is not there yet is waited for, and no longer than was asked."""

import socket
import threading
from functools import partial
from pathlib import Path

import pytest

from holdfast.cli.wait import wait_for
from holdfast.run.option_values import OptionError
from holdfast.target.descriptor import TargetError, load

MINE = """
[target]
name = "mine"
spec = "admission"
[[node]]
urls = {{ http = "http://127.0.0.1:{port}" }}
"""


def test_a_descriptor_that_comes_later_is_read_when_it_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.toml"
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = MINE.format(port=server.getsockname()[1])
        threading.Timer(0.3, partial(file.write_text, text)).start()
        wait_for(partial(load, file), str(file), "10s")
    assert file.exists()
    assert capsys.readouterr().err == f"waiting up to 10 s for {file}\n"


def test_a_descriptor_of_servers_that_are_gone_is_read_again_until_it_is_another(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(MINE.format(port=1))
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = MINE.format(port=server.getsockname()[1])
        threading.Timer(0.3, partial(file.write_text, text)).start()
        wait_for(partial(load, file), str(file), "10s")
    assert file.read_text() == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "mine.toml: there is no such descriptor (waited 0.2 s)"),
        (MINE.format(port=1), "mine.toml (waited 0.2 s)"),
    ],
)
def test_what_is_not_there_in_time_is_one_sentence(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "mine.toml"
    if text:
        file.write_text(text)
    with pytest.raises(TargetError) as caught:
        wait_for(partial(load, file), str(file), "200ms")
    assert str(caught.value).endswith(said)
    assert "\n" not in str(caught.value)


def test_a_wrong_descriptor_is_refused_at_once(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("[target]\nname = 1\n")
    with pytest.raises(TargetError):
        wait_for(partial(load, file), str(file), "1h")


def test_there_has_to_be_a_target_to_wait_for() -> None:
    with pytest.raises(OptionError, match="name one with --target"):
        wait_for(lambda: load(Path("nowhere")), None, "1s")
