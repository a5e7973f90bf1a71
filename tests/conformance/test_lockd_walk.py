"""The model of lockd that walks go over, on a node in memory that is sound or wrong in one way."""

import asyncio
import random
import re
from collections.abc import Iterable
from dataclasses import replace

import pytest

from holdfast import rooms
from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import Drawer
from holdfast.check.walk.play import Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.story import lines
from holdfast.check.walk.vocabulary import Broken, Command, Seen, TooUncertain
from holdfast.conformance.lockd.walks import goal
from holdfast.conformance.lockd.walks.cluster.model import ClusterModel
from holdfast.conformance.lockd.walks.cluster.state import Cluster
from holdfast.conformance.lockd.walks.commands import all_commands
from holdfast.conformance.lockd.walks.model import LockdModel
from holdfast.conformance.lockd.walks.sights import Heard, Listed, Saying
from holdfast.conformance.lockd.walks.situations import kind
from holdfast.conformance.lockd.walks.state import Member, State
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.walks import Span
from holdfast.run.suite import checks_of
from tests.conformance.lockd.sound_node import SPANS, WAYS_TO_BE_SOUND, WAYS_TO_BE_WRONG, MemoryWorld, Node
from tests.conformance.lockd.sound_pair import LEADER, TERM, MemoryPair

START = State(lead=1, floor=1, voted=1)


def play_on(world: MemoryWorld) -> Play[State]:
    model = LockdModel(SPANS)
    return Play(model, world, Possible(model, [START]), world.clock())


def walked(seed: int, coverage: Coverage, habit: str = "", steps: int = 60) -> Broken | None:
    """Performs one drawn walk; returns what it found."""
    world = MemoryWorld(Node(habit))
    play = play_on(world)
    coverage.goal = play.model.goal()
    drawer = Drawer.of(play.model, world, coverage, random.Random(seed))
    try:
        asyncio.run(play.draw(drawer, steps, world.node.now + 1000))
    except Broken as broken:
        broken.add_note("\n".join(lines(play.story)))
        return broken
    except TooUncertain:
        return None
    return None


def performed(commands: Iterable[Command | float], habit: str = "") -> Play[State]:
    """Performs these commands; a number is time that passes."""
    world = MemoryWorld(Node(habit))
    play = play_on(world)

    async def all_of_them() -> None:
        for each in commands:
            if isinstance(each, float):
                world.node.pass_until(world.node.now + each)
            else:
                await play.perform((each,))

    asyncio.run(all_of_them())
    return play


def do(name: str, **args: str | bool) -> Command:
    return Command.of(name, **args)


DEPOSED = (do("announce", who="s1"), 4.5, do("announce", who="s1"), do("votes", who="s1", on=False))
STEPS_DOWN = do("wait", side="after", kind="step-down", **{"for": "the step-down of the node"})
LEADERLESS = (do("depose", who="s1"),)
VOTED = (*LEADERLESS, do("acquire", who="s1", term="above"))
REPORTED = (*LEADERLESS, do("announce", who="s1"), do("report", who="s1"), 3.5, do("replay", txn="t1"))
REGISTERED = do("register", backend="h1", endpoint="s1")
FOLLOWING = (*VOTED, do("renew", who="s1", term="current"))


@pytest.mark.parametrize("habit", WAYS_TO_BE_SOUND)
def test_a_sound_node_raises_no_alarm_whatever_its_habit(habit: str) -> None:
    coverage = Coverage()
    for seed in range(4):
        broken = walked(seed, coverage, habit)
        assert broken is None, "\n".join([str(broken), *getattr(broken, "__notes__", [])])


@pytest.mark.parametrize("wrong", WAYS_TO_BE_WRONG)
def test_a_node_that_is_wrong_in_one_way_is_found(wrong: str) -> None:
    coverage = Coverage()
    assert any(walked(seed, coverage, wrong) for seed in range(12))


@pytest.mark.parametrize(
    ("wrong", "commands", "rows"),
    [
        ("members stay", [do("announce", who="s1"), 9.5], ("TC-MEMBER-05",)),
        ("leads without a quorum", [*DEPOSED, STEPS_DOWN], ("TC-STEP-03",)),
        ("a vote is shown", VOTED, ("TC-ELECT-04",)),
        ("a leave may name another", [do("announce", who="s1"), do("leave", who="x", naming="s1")], ("TC-LEAVE-01",)),
        ("a higher term steals", [do("acquire", who="s1", term="above")], ("TC-ELECT-05",)),
        ("asks nobody for a term", [*REPORTED, do("votes", who="s1", on=True), 1.0], ("TC-ELECT-01",)),
        ("an old term is passed on", [REGISTERED, do("decide", txn="t3", **{"as": "commit"})], ("TC-TXN-08",)),
        ("leaves without a release", [do("announce", who="s1"), 4.5, do("exit")], ("TC-LEAVE-10",)),
        ("a learned leader is never forgotten", [*LEADERLESS, do("report", who="s1"), 3.5], ("TC-ELECT-08",)),
        ("takes what is malformed", [do("malformed", call="announce with a user")], ("TC-MEMBER-02",)),
        ("a release is ignored", [*FOLLOWING, do("release", who="s1", term="current")], ("TC-STEP-05",)),
    ],
)
def test_a_finding_lands_on_the_row_that_states_it(
    wrong: str, commands: list[Command | float], rows: tuple[str, ...]
) -> None:
    performed([*commands, do("intrude", route="leave")])
    with pytest.raises(Broken) as found:
        performed([*commands, do("intrude", route="leave")], wrong)
    assert set(rows) <= set(found.value.rows)


def test_a_lease_is_kept_until_its_end_and_not_longer() -> None:
    for late, leads in ((2.5, True), (3.5, False)):
        play = performed([*FOLLOWING, late, do("replay", txn="t1")])
        slots = {state.slot is not None for state in play.possible.states}
        assert slots == {leads}


def test_while_a_quorum_is_unsettled_both_outcomes_are_possible() -> None:
    play = performed([do("announce", who="x")])
    assert all(state.unsettled and state.shaky for state in play.possible.states)
    assert {timer.name for timer in play.possible.timers()} >= {"a step-down of the node"}


def test_a_node_that_has_left_comes_back_only_when_it_is_told_to() -> None:
    play = performed([do("announce", who="s1"), do("exit"), 4.0, do("decide", txn="t1", **{"as": "commit"})])
    assert not any(state.here for state in play.possible.states)
    play = performed([do("announce", who="s1"), do("exit"), do("return"), 9.5, do("replay", txn="t1")])
    assert all(state.here for state in play.possible.states)


def cluster_walked(seed: int, coverage: Coverage, wrong: str = "") -> Broken | None:
    world, model = MemoryPair(wrong), ClusterModel(SPANS)
    play = Play(model, world, Possible(model, [Cluster(LEADER, TERM)]), world.clock())
    coverage.goal = model.goal()
    drawer = Drawer.of(model, world, coverage, random.Random(seed))
    try:
        asyncio.run(play.draw(drawer, 200, world.now + 1000))
    except Broken as broken:
        return broken
    return None


def test_two_sound_nodes_raise_no_alarm_and_every_pair_is_reached() -> None:
    coverage = Coverage()
    assert [cluster_walked(seed, coverage) for seed in range(6)] == [None] * 6
    assert coverage.never == []
    assert coverage.beyond == []


@pytest.mark.parametrize(
    ("wrong", "row"),
    [
        ("a replica is replicated", "TC-RM-10#2"),
        ("unregister is local", "TC-RM-10#2"),
        ("a follower decides", "TC-TXN-01#2"),
    ],
)
def test_a_cluster_that_is_wrong_in_one_way_is_found(wrong: str, row: str) -> None:
    found = cluster_walked(1, Coverage(), wrong)
    assert found is not None
    assert row in found.rows


def test_the_walks_claim_exactly_the_rows_that_rules_state() -> None:
    folder = rooms.folder("conformance") / "lockd" / "walks"
    named = re.compile(r'"(TC-[A-Z]+-\d+)(?:#(\d))?"')
    stated = {
        (row, int(part or 1)) for file in folder.rglob("*.py") for row, part in named.findall(file.read_text("utf-8"))
    }
    checks = [spec for spec in checks_of("lockd", naming="walk_steps").values() if spec.walks]
    assert {(claim.id, claim.part) for spec in checks for claim in spec.claims} == stated


def test_every_command_has_a_kind_that_the_goal_knows() -> None:
    known = {pair.command for pair in goal.pairs(("crash", "stop"))}
    refusing = State(refusing=frozenset({"s1"}))
    assert {kind(command) for state in (START, refusing) for command in all_commands(state, ("crash", "stop"))} <= known


def told(command: Command, what: Listed | Heard, start: State = START) -> Possible[State]:
    possible = Possible(LockdModel(SPANS, ("crash", "stop")), [start])
    possible.take((command, Seen(100.0, 101.0, what, str(what))))
    return possible


LED_WITH_A_MEMBER = replace(START, members=(("s1", Member("s1", Span(99.0, 99.0))),))
SAID_OK = Answer(200, {}, {}, "", 100.0, 101.0)


def test_members_are_there_again_after_a_crash_and_terms_are_not() -> None:
    (after,) = told(do("crash"), Listed(SAID_OK, ("node", "s1")), LED_WITH_A_MEMBER).states
    assert (after.lead, after.floor, after.others) == (None, 0, ("s1",))
    with pytest.raises(Broken) as found:
        told(do("crash"), Listed(SAID_OK, ("node",)), LED_WITH_A_MEMBER)
    assert found.value.rows == ("TC-DATA-05",)


@pytest.mark.parametrize(
    ("leaves", "releases", "ended", "row"),
    [
        ({}, {"s1": (1,)}, True, "TC-LEAVE-09"),
        ({"s1": 1}, {}, True, "TC-LEAVE-10"),
        ({"s1": 1}, {}, False, "TC-LEAVE-09"),
    ],
    ids=["no leave", "no release", "still there"],
)
def test_a_node_that_is_told_to_stop_takes_its_leave(
    leaves: dict[str, int], releases: dict[str, tuple[int, ...]], ended: bool, row: str
) -> None:
    legal = Listed(SAID_OK, ("node", "s1"), leaves={"s1": 1}, releases={"s1": (1,)})
    assert told(do("stop"), legal, LED_WITH_A_MEMBER).states
    with pytest.raises(Broken) as found:
        told(do("stop"), replace(legal, leaves=leaves, releases=releases, ended=ended), LED_WITH_A_MEMBER)
    assert found.value.rows == (row,)


@pytest.mark.parametrize(
    ("said", "row"),
    [
        (Saying("acquire", itself=True, ttl=2 * SPANS.leader_ttl), "TC-ELECT-02"),
        (Saying("renew", itself=False, ttl=SPANS.leader_ttl), "TC-STEP-01"),
        (Saying("announce", itself=False), "TC-LOOP-02"),
        (Saying("register", itself=False), "TC-RM-01"),
    ],
)
def test_what_a_node_says_of_its_own_accord_is_about_itself(said: Saying, row: str) -> None:
    fair = replace(said, itself=True, ttl=SPANS.leader_ttl)
    assert told(do("heard"), Heard(0, 0, (), (fair,))).states
    with pytest.raises(Broken) as found:
        told(do("heard"), Heard(0, 0, (), (said,)))
    assert found.value.rows == (row,)
