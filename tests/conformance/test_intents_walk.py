"""The model of intents that walks go over, on a service in memory that is sound or wrong in one way."""

import asyncio
import random
import re
from collections.abc import Iterable

import pytest

from holdfast import rooms
from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import WAIT, Drawer
from holdfast.check.walk.play import Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.story import lines
from holdfast.check.walk.vocabulary import Broken, Command, TooUncertain
from holdfast.conformance.intents.walks import goal, sentences
from holdfast.conformance.intents.walks.commands import (
    API,
    BEGIN,
    FLIP,
    KILL,
    RESUME,
    SECRETS,
    STAND,
    TERM,
    Sight,
    all_commands,
    all_openings,
    all_races,
)
from holdfast.conformance.intents.walks.model import CALLS, IntentsModel
from holdfast.conformance.intents.walks.situations import kind, own
from holdfast.conformance.intents.walks.state import State
from holdfast.run.suite import checks_of
from tests.conformance.intents.memory_world import MemoryWorld
from tests.conformance.intents.sound_service import SPANS, WAYS_TO_BE_SOUND, WAYS_TO_BE_WRONG, Service

CALM = Sight(nodes=2, store=True, pipelines=True, proxied=True, users=2, near_miss=True)
UPSETS = (KILL, BEGIN, API, TERM, STAND, RESUME, FLIP, *SECRETS)
UPSET = Sight(**{**vars(CALM), "upsets": UPSETS, "standby": True})


def play_on(world: MemoryWorld, sight: Sight = UPSET) -> Play[State]:
    model = IntentsModel(SPANS, sight)
    start = State(phase=world.service.phase)
    return Play(model, world, Possible(model, [start]), world.clock())


def walked(seed: int, coverage: Coverage, habit: str = "", sight: Sight = UPSET, phase: int = 2) -> Broken | None:
    """Performs one drawn walk; returns what it found."""
    world = MemoryWorld(Service(habit, phase=phase))
    play = play_on(world, sight)
    coverage.goal = play.model.goal()
    drawer = Drawer.of(play.model, world, coverage, random.Random(seed))
    try:
        asyncio.run(play.draw(drawer, 60, world.service.now + 1000))
    except Broken as broken:
        broken.add_note("\n".join(lines(play.story)))
        return broken
    except TooUncertain:
        return None
    return None


def performed(commands: Iterable[Command | float], habit: str = "", phase: int = 2) -> Play[State]:
    """Performs these commands; a number is time that passes."""
    world = MemoryWorld(Service(habit, phase=phase))
    play = play_on(world)

    async def all_of_them() -> None:
        for each in commands:
            if isinstance(each, float):
                world.service.pass_until(world.service.now + each)
            else:
                await play.perform((each,))

    asyncio.run(all_of_them())
    return play


def do(name: str, **args: str) -> Command:
    return Command.of(name, **args)


def start(target: str, profile: str = "p1", **more: str) -> Command:
    return do("start", target=target, profile=profile, node="n1", **more)


def stop(target: str, profile: str = "p1") -> Command:
    return do("stop", target=target, profile=profile, which="current", node="n1")


@pytest.mark.parametrize("habit", WAYS_TO_BE_SOUND)
def test_a_sound_service_raises_no_alarm_whatever_its_habit(habit: str) -> None:
    for sight, phase in ((CALM, 2), (CALM, 1), (UPSET, 2)):
        coverage = Coverage()
        for seed in range(3):
            broken = walked(seed, coverage, habit, sight, phase)
            assert broken is None, "\n".join([str(broken), *getattr(broken, "__notes__", [])])


@pytest.mark.parametrize("wrong", WAYS_TO_BE_WRONG)
def test_a_service_that_is_wrong_in_one_way_is_found(wrong: str) -> None:
    coverage = Coverage()
    assert any(walked(seed, coverage, wrong) for seed in range(12))


KILLED = do("kill", worker="w1")
STANDBY_UP = do("begin", worker="w2")
BACK_AGAIN = do("begin", worker="w1")
AGAIN = do("redeliver", target="c1", profile="p1", which="current")
BY_A_READER = do("refused", target="c1", profile="p1", what="start", by="a reader")
BLANK = do("malformed", target="c1", profile="p1", call="a blank channel")
STANDS, GOES_ON = do("stand", worker="w1"), do("resume", worker="w1")


@pytest.mark.parametrize(
    ("wrong", "commands", "row"),
    [
        ("no dedup", [start("c1"), start("c1", "p2")], "IN-BUSY-02"),
        ("renews nothing", [start("c1"), 7.5, do("ask", which="unknown")], "IN-RUN-04"),
        ("releases nothing", [start("c1"), stop("c1")], "IN-RUN-06"),
        ("releases what is another's", [start("c1"), start("c1", "p2")], "IN-DEDUP-01"),
        ("keeps the channel without a tuner", [start("c1"), start("c2"), start("c3")], "IN-TUNER-03"),
        ("takes a lease back", [start("c1"), do("seize", target="c1", lease="service")], "IN-RUN-05"),
        ("runs what comes again", [start("c1"), AGAIN], "IN-DEDUP-03"),
        ("starts what was stopped", [STANDS, start("c1"), stop("c1"), GOES_ON], "IN-RUN-08"),
        ("stops only what runs", [do("pace", target="c1", how="slow"), start("c1"), stop("c1")], "IN-RUN-08"),
        ("flushes nothing", [KILLED, do("seize", target="c1", lease="service"), BACK_AGAIN], "IN-KILL-06"),
        ("orphans stay", [start("c1"), KILLED, BACK_AGAIN], "IN-KILL-10"),
        ("orphans stay", [start("c1"), STANDBY_UP, KILLED, 20.0, do("ask", which="unknown")], "IN-KILL-05"),
        ("takes leases in phase 2", [STANDS, start("c1")], "IN-QUEUE-06"),
        ("what has ended captures", [start("c1"), stop("c1"), start("c1")], "IN-IDEM-05"),
        ("forgets the previous secret", [start("c1"), do("rotate"), start("c1")], "IN-KEY-06"),
        ("writes under both secrets", [do("rotate"), start("c1")], "IN-KEY-04"),
        ("publishes twice", [start("c1")], "IN-IDEM-02"),
        ("a reader may post", [BY_A_READER], "IN-AUTH-02"),
        ("takes what is malformed", [BLANK], "IN-VALID-02"),
    ],
)
def test_a_finding_lands_on_the_row_that_states_it(wrong: str, commands: list[Command | float], row: str) -> None:
    performed(commands)
    with pytest.raises(Broken) as found:
        performed(commands, wrong)
    assert row in found.value.rows, str(found.value)


def test_what_a_killed_worker_ran_holds_its_channel_until_its_leases_lapse() -> None:
    for later, words in ((1.0, {"orphan"}), (7.0, {"lapsed"})):
        play = performed([start("c1"), KILLED, later, do("ask", which="unknown")])
        assert {own(state, state.sessions[0].key) for state in play.possible.states} == words


def test_of_two_workers_either_may_have_run_what_was_started_while_both_were_up() -> None:
    play = performed([STANDBY_UP, start("c1"), KILLED])
    assert {state.sessions[0].dead for state in play.possible.states} == {True, False}


def test_in_phase_1_the_channel_is_taken_by_the_api_and_free_when_that_lease_lapses() -> None:
    held = performed([STANDS, start("c1"), start("c1", "p2")], phase=1)
    assert [len(state.sessions) for state in held.possible.states] == [1]
    lapsed = performed([STANDS, start("c1"), 7.0, start("c1", "p2")], phase=1)
    assert {len(state.sessions) for state in lapsed.possible.states} == {2}


def test_what_waits_for_a_worker_is_handled_in_any_order() -> None:
    for habit in ("", "the last comes first"):
        play = performed([STANDS, start("c1"), start("c1", "p2"), GOES_ON], habit)
        (state,) = play.possible.states
        assert sorted(each.why for each in state.sessions) == ["", "busy"]


def test_a_session_under_a_forgotten_secret_is_not_found_and_one_under_the_previous_secret_is() -> None:
    for how, sessions in (("rotate", 1), ("forget", 2)):
        play = performed([start("c1"), do(how), start("c1")])
        assert {len(state.sessions) for state in play.possible.states} == {sessions}


def test_the_walks_claim_exactly_the_rows_that_rules_state() -> None:
    folder = rooms.folder("conformance") / "intents" / "walks"
    stated = {row for file in folder.glob("*.py") for row in re.findall(r'"(IN-[A-Z]+-\d+)"', file.read_text("utf-8"))}
    checks = [spec for spec in checks_of("intents", naming="walk_steps").values() if spec.walks]
    assert {(claim.id, claim.part) for spec in checks for claim in spec.claims} == {(row, 1) for row in stated}


def test_every_command_is_known_to_goal_model_and_story() -> None:
    known = {pair.command for pair in goal.pairs(UPSET)}
    state = State(foreign=frozenset({"c1"}), paces=(("c1", "slow"),))
    drawn = [*all_commands(state, UPSET), *(each for opening in all_openings(UPSET) for each in opening)]
    drawn = [each for each in drawn if each.name != WAIT] + [each for race in all_races(UPSET) for each in race]
    assert {kind(command) for command in drawn} <= known
    assert {command.name for command in drawn} <= CALLS.keys()
    assert all(sentences.describe(command) for command in drawn)


def test_the_goal_of_a_target_that_shows_only_its_wire_has_nothing_else() -> None:
    blind = Sight(recordings=False)
    assert {kind(command) for command in all_commands(State(), blind)} == {
        pair.command for pair in goal.pairs(blind) if not pair.command.startswith("wait")
    }
