"""Random schedules: the same on every version of Python, sound, and healed in time."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.chaos.schedules.draw import draw
from holdfast.chaos.schedules.kinds import KINDS
from holdfast.chaos.schedules.schedule import Place, ScheduleError, Subject
from holdfast.chaos.schedules.text import dump, parse
from holdfast.chaos.schedules.validate import problems

SUBJECTS = [Subject(place, name) for place in Place for name in "ab"]


def test_a_seed_gives_this_schedule_on_every_version() -> None:
    """Written down once; another interpreter, or a change of the draws, shows here."""
    links = [Subject(Place.LINK, "a"), Subject(Place.LINK, "b"), Subject(Place.NODE, "a")]
    drawn = draw(4711, 5, links, ["delay", "cut", "kill", "reset"], 60.0)
    assert drawn.describe().splitlines() == [
        "drawn-4711: 5 faults in 60s, seed 4711",
        "  1-kill   node:a  kill, at 34.981s, for 9.157s",
        "  2-delay  link:b  delay direction=up jitter=0s real seconds=0.452s real, at 37.277s, for 6.853s",
        "  3-reset  link:b  reset, at 39.377s, once",
        "  4-cut    link:a  cut, at 39.658s, for 17.095s",
        "  5-kill   node:a  kill, at 53.896s, for 4.161s",
    ]


@given(
    seed=st.integers(0, 2**64),
    number=st.integers(0, 6),
    kinds=st.sets(st.sampled_from(sorted(KINDS)), min_size=1),
    rest=st.sampled_from([0.0, 0.5, 2.0]),
    calm=st.sampled_from([0.0, 20.0]),
)
def test_every_drawn_schedule_is_sound(seed: int, number: int, kinds: set[str], rest: float, calm: float) -> None:
    drawn = draw(seed, number, SUBJECTS, kinds, 120.0, shortest=2.0, longest=9.0, rest=rest, calm=calm)
    assert not list(problems(drawn))
    assert (len(drawn.steps), drawn.seed) == (number, seed)
    assert {step.fault for step in drawn.steps} <= kinds
    windows = drawn.planned()
    assert all(window.end <= 120.0 - calm for window in windows)
    assert all(2.0 <= step.lasts.seconds <= 9.0 for step in drawn.steps if step.lasts)
    for one, other in pairwise(windows):
        assert one.start <= other.start
    for fault in drawn.steps:
        assert fault.arguments.keys() == KINDS[fault.fault].parameters.keys()
    assert parse(dump(drawn)) == drawn


@given(st.integers(0, 1000), st.randoms(use_true_random=False))
def test_the_order_of_the_inputs_does_not_matter(seed: int, shuffler: object) -> None:
    kinds, subjects = sorted(KINDS), list(SUBJECTS)
    expected = draw(seed, 5, subjects, kinds, 60.0)
    shuffler.shuffle(kinds)  # type: ignore[attr-defined]  # hypothesis types it as object
    shuffler.shuffle(subjects)  # type: ignore[attr-defined]  # hypothesis types it as object
    assert draw(seed, 5, [*subjects, *subjects], kinds, 60.0) == expected


@pytest.mark.parametrize("rest", [0.0, 1.0])
def test_faults_that_exclude_each_other_fill_one_subject_without_overlap(rest: float) -> None:
    for seed in range(40):
        drawn = draw(
            seed, 5, [Subject(Place.LINK, "a")], ["cut", "refuse", "stall", "reset"], 60.0, longest=4.0, rest=rest
        )
        windows = sorted(drawn.planned(), key=lambda window: window.start)
        gaps = [after.start - before.end for before, after in pairwise(windows)]
        assert all(gap >= rest - 1e-9 for gap in gaps)


def test_others_do_overlap_now_and_then() -> None:
    overlapping = 0
    for seed in range(40):
        one, other = draw(seed, 2, SUBJECTS, ["cut", "delay"], 30.0).planned()
        overlapping += one.overlaps(other)
    assert 0 < overlapping < 40


def test_a_duration_off_the_grid_is_not_overrun() -> None:
    for seed in range(20):
        [only] = draw(seed, 1, SUBJECTS, ["stop"], 10.0006, shortest=9.999, longest=10.0006).planned()
        assert only.end <= 10.0006


def test_different_seeds_give_different_schedules() -> None:
    assert len({dump(draw(seed, 3, SUBJECTS, KINDS, 60.0)) for seed in range(50)}) == 50


@pytest.mark.parametrize(
    ("number", "subjects", "kinds", "shortest", "complaint"),
    [
        (9, [Subject(Place.LINK, "a")], ["cut"], 5.0, "of 9 faults find room in 20 s; make the schedule longer"),
        (1, [Subject(Place.NODE, "a")], ["cut"], 1.0, "none of cut can be put on node:a; name others"),
        (1, [], ["cut"], 1.0, "none of cut can be put on no subject"),
        (1, SUBJECTS, ["cute"], 1.0, "no fault 'cute'; did you mean 'cut'?"),
        (1, SUBJECTS, ["cut"], 10.0, "make shortest above 0 and not above longest"),
        (1, SUBJECTS, ["cut"], 0.0, "make shortest above 0 and not above longest"),
    ],
)
def test_what_can_not_be_drawn_is_said(
    number: int, subjects: list[Subject], kinds: list[str], shortest: float, complaint: str
) -> None:
    with pytest.raises(ScheduleError) as raised:
        draw(1, number, subjects, kinds, 20.0, shortest=shortest)
    assert complaint in str(raised.value)
