"""The engine of walks, on a toy spec: possible states, coverage, findings, shrinking and replay."""

import asyncio
import json
import random
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import WAIT, Drawer, waits_for
from holdfast.check.walk.play import Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.replay import Replay, ReplayError, read, single, text_of
from holdfast.check.walk.shrink import Found, Shrunk, shrink
from holdfast.check.walk.story import lines
from holdfast.check.walk.vocabulary import Broken, Command, Pair, Seen, Step
from tests.kernel.walk.toy import CLEANUP, LEASE, Chained, Doubtful, LockModel, State, fresh

STEPS = 200


def take(who: str) -> Command:
    return Command.of("take", who=who)


def free(who: str) -> Command:
    return Command.of("free", who=who)


def possible(*states: State) -> Possible[State]:
    return Possible(LockModel(), states or [State()])


def seen(what: str, at: float = 100.0, took: float = 0.01) -> Seen:
    return Seen(at, at + took, what, what)


def begin(wrong: str = "") -> Play[State]:
    model, world, clock = fresh(wrong)
    return Play(model, world, Possible(model, [State()]), clock)


def walk(wrong: str = "", seed: int = 1, coverage: Coverage | None = None, steps: int = STEPS) -> Found | None:
    play = begin(wrong)
    coverage = coverage or Coverage(play.model.goal())
    drawer = Drawer(play.model, play.world, coverage, random.Random(seed))
    try:
        asyncio.run(play.draw(drawer, steps, until=float("inf")))
    except Broken as broken:
        return Found(tuple(play.steps), broken, tuple(play.story))
    return None


def again(wrong: str, steps: Sequence[Step]) -> Found | None:
    play = begin(wrong)
    try:
        asyncio.run(play.repeat(steps))
    except Broken as broken:
        return Found(tuple(play.steps), broken, tuple(play.story))
    return None


def shortened(wrong: str, found: Found) -> Shrunk:
    async def try_again(steps: Sequence[Step]) -> Found | None:
        return await asyncio.to_thread(again, wrong, steps)

    return asyncio.run(shrink(found, try_again, until=float("inf")))


# ------------------------------------------------------------------------------------------------ possible states


def test_a_known_answer_leaves_one_state() -> None:
    states = possible()
    assert states.take((take("a"), seen("taken"))) == ("taken",)
    assert [state.holder for state in states.states] == ["a"]


def test_a_lost_answer_leaves_both_states_until_a_look_decides() -> None:
    states = possible()
    states.take((Command.of("lose", who="a"), seen("no answer")))
    assert sorted(state.holder for state in states.states) == ["", "a"]
    states.take((Command.of("look"), seen("a", at=101)))
    assert [state.holder for state in states.states] == ["a"]


@pytest.mark.parametrize(("first", "second", "holder"), [("taken", "busy", "a"), ("busy", "taken", "b")])
def test_commands_at_the_same_instant_may_have_happened_in_either_order(first: str, second: str, holder: str) -> None:
    states = possible()
    states.take((take("a"), seen(first)), (take("b"), seen(second)))
    assert [state.holder for state in states.states] == [holder]


def test_two_winners_of_a_race_are_explained_by_no_order() -> None:
    with pytest.raises(Broken) as found:
        possible().take((take("a"), seen("taken")), (take("b"), seen("taken")))
    assert found.value.rows == ("TOY-ONE",)


@pytest.mark.parametrize(
    ("after", "legal"),
    [
        (LEASE - 0.5, {"busy"}),
        (LEASE + 0.5, {"busy", "taken"}),
        (LEASE + CLEANUP + 0.5, {"taken"}),
    ],
    ids=["before the window", "inside it", "behind it"],
)
def test_near_a_deadline_both_outcomes_are_legal_and_away_from_it_one(after: float, legal: set[str]) -> None:
    for answer in ("busy", "taken"):
        states = possible(State("a", (100.0, 100.01)))
        if answer in legal:
            states.take((take("b"), seen(answer, at=100.0 + after)))
        else:
            with pytest.raises(Broken) as found:
                states.take((take("b"), seen(answer, at=100.0 + after)))
            assert found.value.rows == ("TOY-LAPSE",)
            assert found.value.late == (answer == "busy")


def test_what_is_overdue_says_by_how_much() -> None:
    with pytest.raises(Broken) as found:
        possible(State("a", (100.0, 100.0))).take((take("b"), seen("busy", at=100.0 + LEASE + CLEANUP + 2)))
    assert found.value.overdue == pytest.approx(2)


def test_a_timer_that_another_one_gives_a_new_window_is_held_to_it_at_once() -> None:
    look = Command.of("look")
    Possible(Chained(), ["waiting"]).take((look, seen("signalled", at=8.5)))
    with pytest.raises(Broken) as found:
        Possible(Chained(), ["waiting"]).take((look, seen("signalled", at=10.5)))
    assert found.value.rows == ("TOY-LOOK",)


def test_what_is_overdue_is_told_before_what_would_have_come_too_early() -> None:
    states = Possible(Doubtful(), ["start"])
    with pytest.raises(Broken) as found:
        states.take((Command.of("look"), seen("odd", at=20.0)))
    assert found.value.rows == ("TOY-OVERDUE",)


def test_rows_are_judged_when_one_of_their_rules_was_held_up_to_the_target() -> None:
    states = possible()
    states.take((take("a"), seen("taken")))
    states.take((take("b"), seen("busy")))
    assert states.judged == {"TOY-TAKE": 1, "TOY-ONE": 1}


# ------------------------------------------------------------------------------------------------ drawing


def test_what_is_wanted_follows_new_pairs_and_a_new_goal() -> None:
    goal = LockModel().goal()
    coverage = Coverage(goal)
    pair = Pair("free", "take")
    before = coverage.wanted["free"]
    coverage.visit(pair, "begin")
    assert coverage.wanted["free"] == before - 1
    coverage.visit(pair, "begin")
    assert coverage.wanted["free"] == before - 1
    coverage.goal = goal | {Pair("free", "look")}
    assert coverage.wanted["free"] == before


def test_a_deadline_can_be_waited_for_on_both_sides_as_long_as_they_are_ahead() -> None:
    (timer,) = possible(State("a", (100.0, 100.0))).timers()
    sides = [
        [wait.get("side") for wait in waits_for(timer, now, patience=60)] for now in (100.0, 110.0, 100 + 2 * LEASE)
    ]
    assert sides == [["before", "after"], ["after"], []]
    assert waits_for(timer, 100.0, patience=1) == []


def test_a_walk_covers_every_pair_of_a_correct_server_without_an_alarm() -> None:
    coverage = Coverage(LockModel().goal())
    assert walk(coverage=coverage) is None
    assert coverage.never == []
    assert coverage.beyond == []
    assert coverage.complete


def test_steering_reaches_every_pair_in_few_steps() -> None:
    coverage = Coverage(LockModel().goal())
    assert walk(coverage=coverage, steps=40) is None
    assert coverage.complete


def test_the_same_seed_draws_the_same_walk() -> None:
    wrong = "the second free does nothing"
    one, other = walk(wrong, seed=7), walk(wrong, seed=7)
    assert one is not None
    assert other is not None
    assert one.steps == other.steps


# ------------------------------------------------------------------------------------------------ findings

WRONG = {
    "the second free does nothing": ("TOY-LOOK", 4),
    "never lapses": ("TOY-LAPSE", 2),
    "lapses early": ("TOY-LAPSE", 2),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_server_is_found_and_the_finding_names_its_row(wrong: str) -> None:
    found = walk(wrong)
    assert found is not None
    assert found.broken.rows == (WRONG[wrong][0],)


@pytest.mark.parametrize("wrong", WRONG)
def test_a_finding_is_shrunk_to_the_fewest_steps_and_still_fails(wrong: str) -> None:
    found = walk(wrong)
    assert found is not None
    short = shortened(wrong, found)
    assert short.repeatable
    assert len(short.found.steps) == WRONG[wrong][1]
    assert short.found.broken.rows == found.broken.rows


def test_a_finding_that_does_not_come_again_is_kept_and_said_to_be_so() -> None:
    found = walk("never lapses")
    assert found is not None
    short = shortened("", found)
    assert short.found is found
    assert not short.repeatable
    assert short.tries > 0


def test_a_try_that_would_take_longer_than_is_left_ends_in_time() -> None:
    found = walk("never lapses")
    assert found is not None

    async def forever(_steps: Sequence[Step]) -> Found | None:
        await asyncio.sleep(60)
        return None

    began = time.monotonic()
    short = asyncio.run(shrink(found, forever, until=began + 0.1))
    assert time.monotonic() - began < 5
    assert short.found is found


def test_a_world_of_a_shrunk_walk_is_given_only_steps_that_make_sense_there() -> None:
    wait = Command.of("wait", **{"for": "the lapse", "side": "after", "kind": "lease"})
    assert again("", single([wait, take("a"), free("a")])) is None


def test_a_story_numbers_its_steps_and_ends_with_what_was_legal_and_what_came() -> None:
    found = again("the second free does nothing", single([take("a"), free("a"), take("b"), free("b")]))
    assert found is not None
    assert lines(found.story) == [
        "  1. a takes → taken",
        "  2. a frees → freed",
        "  3. b takes → taken",
        "  4. b frees → freed",
        "     then look",
        "       legal  nobody",
        "       seen   b",
    ]


# ------------------------------------------------------------------------------------------------ replay files


def test_a_walk_is_a_file_that_finds_the_same_again(tmp_path: Path) -> None:
    wrong = "the second free does nothing"
    found = walk(wrong)
    assert found is not None
    file = tmp_path / "walk.json"
    file.write_text(text_of(Replay("toy", "test_a_walk", 1, found.steps, found.broken.rows)))
    replayed = again(wrong, read(file).steps)
    assert replayed is not None
    assert replayed.broken.rows == found.broken.rows
    assert again("", read(file).steps) is None


def test_commands_of_one_instant_stay_together_in_a_file(tmp_path: Path) -> None:
    walked = Replay("toy", "test_a_walk", 3, ((take("a"), take("b")), (free("a"),)))
    file = tmp_path / "walk.json"
    file.write_text(text_of(walked))
    assert read(file) == walked


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nonsense", "not JSON"),
        ("[]", "not a walk"),
        (json.dumps({"holdfast": "walk", "version": 99}), "version 99"),
        (json.dumps({"holdfast": "walk", "version": 1, "spec": "toy"}), "changed or cut"),
    ],
)
def test_a_file_that_is_no_walk_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "walk.json"
    file.write_text(text)
    with pytest.raises(ReplayError, match=says):
        read(file)


def test_a_walk_performs_its_opening_as_far_as_it_makes_sense() -> None:
    opening: list[Step] = [(take("a"),), (free("b"),)]
    play, coverage = begin(), Coverage()
    drawer = Drawer(play.model, play.world, coverage, random.Random(1), opening=opening)
    assert drawer.draw(play.possible, play.steps, 100.0, 1.0) == (take("a"),)
    assert opening == [(free("b"),)]


def test_a_walk_in_a_hurry_never_waits() -> None:
    play = begin()
    drawer = Drawer(play.model, play.world, Coverage(play.model.goal()), random.Random(1), patient=False)
    asyncio.run(play.draw(drawer, 60, until=float("inf")))
    assert not [step for step in play.steps if step[0].name == WAIT]
