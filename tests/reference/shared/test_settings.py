"""Settings from flags and environment."""

from dataclasses import dataclass
from typing import Any

import pytest

from holdfast.reference.shared import settings as read
from holdfast.reference.shared.settings import BadSetting, read_settings, setting


@dataclass(frozen=True, kw_only=True)
class Settings:
    wait: float = setting(1.5, read.duration, env="WAIT", flag="--wait")
    most: int = setting(3, read.count, env="MOST")
    on: bool = setting(False, read.truth, flag="--on")
    where: str = setting("127.0.0.1:1", read.address, env="WHERE")


def test_a_flag_wins_an_empty_text_is_the_default() -> None:
    assert read_settings(Settings, {}) == Settings()
    assert read_settings(Settings, {"WAIT": "2m", "MOST": ""}) == Settings(wait=120.0)
    assert read_settings(Settings, {"WAIT": "2m"}, ["--wait=250ms", "--on"]) == Settings(wait=0.25, on=True)
    assert read_settings(Settings, {}, ["--on", "no", "--wait", "3"]) == Settings(wait=3.0)


OURS = "--violate ID/n, --stranger SEED:NODE"


@pytest.mark.parametrize(
    ("environment", "argv", "sentence"),
    [
        (
            {"WAIT": "no"},
            [],
            "WAIT='no' must be a time above 0, such as 15s; change it in the environment of the node.",
        ),
        ({}, ["--wait", "0"], "--wait '0' must be a time above 0, such as 15s; change it where the node is started."),
        ({"MOST": "many"}, [], "MOST='many' must be a number; change it in the environment of the node."),
        ({"MOST": "-1"}, [], "MOST='-1' must be a whole number, 0 or more; change it in the environment of the node."),
        (
            {},
            ["--x", "1"],
            f"Unknown argument '--x'; the node takes --wait, --on, {OURS} and its environment.",
        ),
        ({}, ["most"], "Unknown argument 'most'; flags begin with two dashes."),
    ],
)
def test_what_is_wrong_is_said_with_its_name(environment: dict[str, str], argv: list[str], sentence: str) -> None:
    with pytest.raises(BadSetting) as refused:
        read_settings(Settings, environment, argv)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    ("reader", "right", "wrong"),
    [
        (read.positive, ("0.5", 0.5), "0"),
        (read.any_number, ("-3", -3.0), "nan"),
        (read.port, ("0", 0), "65536"),
        (read.truth, ("Yes", True), "perhaps"),
        (read.address, ("h:65535", "h:65535"), "h:65536"),
        (read.redis_url, ("redis://h:1/0", "redis://h:1/0"), "redis://"),
    ],
)
def test_each_reader_knows_right_from_wrong(reader: read.Read, right: tuple[str, Any], wrong: str) -> None:
    assert reader(right[0]) == right[1]
    with pytest.raises(ValueError, match=r"must|port"):
        reader(wrong)
