"""Every line of a run reaches the log, also those that are printed while pytest captures an item."""

import os

import pytest

from holdfast.cli.screen import screen


def test_lines_that_come_while_output_is_captured_are_shown(capfd: pytest.CaptureFixture[str]) -> None:
    kept = os.dup(1)
    elsewhere = os.open(os.devnull, os.O_WRONLY)
    with screen(wanted=True) as terminal:
        assert terminal is not None
        os.dup2(elsewhere, 1)  # what pytest does around every item
        terminal.show_lines(["a finding", "its end"])
        os.dup2(kept, 1)
    os.close(kept)
    os.close(elsewhere)
    assert "a finding\nits end\n" in capfd.readouterr().out


def test_an_output_without_a_descriptor_is_written_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    with screen(wanted=True) as terminal:
        assert terminal is not None
        terminal.show_lines(["the last line"])
    assert capsys.readouterr().out == "the last line\n"


def test_an_answer_for_a_machine_has_no_terminal() -> None:
    with screen(wanted=False) as terminal:
        assert terminal is None
