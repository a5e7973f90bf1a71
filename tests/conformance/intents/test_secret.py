"""How a secret is found in a text, and what a text may tell of one; and the order of states."""

import base64

import pytest

from holdfast.conformance.intents.course import forward
from holdfast.conformance.intents.secret import readings, shows

SECRET = "holdfast-idem-current-000000000001"  # noqa: S105 - of no target
HEX = SECRET.encode().hex()
BASE64 = base64.b64encode(SECRET.encode()).decode()


@pytest.mark.parametrize("text", [SECRET, HEX, HEX.upper(), BASE64, BASE64.rstrip("=")])
def test_a_secret_shows_as_text_in_hex_and_in_base64(text: str) -> None:
    assert shows(SECRET, f'{{"detail": "key of {text}."}}')


def test_a_part_of_a_secret_is_not_it() -> None:
    assert not shows(SECRET, f"{SECRET[:-1]} {HEX[:-2]}")


@pytest.mark.parametrize("text", [SECRET, HEX, BASE64])
def test_every_word_of_a_text_is_read_in_all_forms(text: str) -> None:
    assert SECRET.encode() in set(readings(f'{{"message": "generated secret={text}, lost at a restart"}}'))


@pytest.mark.parametrize(
    ("states", "legal"),
    [
        ("NEW STARTING READY", True),
        ("IDLE PRIMING READY", True),
        ("READY", True),
        ("NEW READY STARTING", False),
        ("READY READY", False),
        ("NEW FAILED", False),
    ],
    ids=["whole", "other names", "late", "back", "twice", "ended"],
)
def test_states_only_come_nearer_to_a_running_session(states: str, legal: bool) -> None:
    assert forward(states.split()) is legal
