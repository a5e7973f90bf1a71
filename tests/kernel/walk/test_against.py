"""The same walk on two servers of the toy spec: which two of model, this one and the other one agree."""

import asyncio
import random

import pytest

from holdfast.check.finding import Inconclusive
from holdfast.check.walk.against import Beside, Both, Lockstep, normal
from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import Drawer
from holdfast.check.walk.play import Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.replay import single
from holdfast.check.walk.story import lines
from holdfast.check.walk.vocabulary import Broken, Command
from tests.kernel.walk.toy import LockWorld, State, fresh

WRONG = "the second free does nothing"
STEPS = single([Command.of(do, who=who) for who in ("a", "b") for do in ("take", "free")])
WAIT = (Command.of("wait", **{"for": "the lapse", "side": "after", "kind": "lease"}),)


def play(wrong: str = "") -> Play[State]:
    model, world, clock = fresh(wrong)
    return Play(model, world, Possible(model, [State()]), clock)


def both(here: str = "", there: str = "") -> Lockstep[State]:
    return Lockstep(**vars(play(here)), there=play(there), name="the reference")


def broken(walk: Lockstep[State]) -> Broken:
    with pytest.raises(Broken) as found:
        asyncio.run(walk.repeat(STEPS))
    return found.value


def test_two_right_servers_take_the_same_walk_without_a_difference() -> None:
    walk = both()
    drawer = Drawer(walk.model, Both(walk, walk.there), Coverage(walk.model.goal()), random.Random(1))
    asyncio.run(walk.draw(drawer, 100, until=float("inf")))
    assert len(walk.steps) == 100
    assert walk.there.steps == walk.steps
    assert not walk.differences


def test_where_the_other_one_agrees_with_the_model_this_one_stands_alone() -> None:
    walk = both(here=WRONG)
    found = broken(walk)
    assert found.rows == ("TOY-LOOK",)
    assert found.beside == "two against one: the reference and the model agree (the reference answered nobody)"
    assert lines(walk.story)[-1] == f"       beside {found.beside}"


def test_where_both_do_the_same_the_model_stands_alone() -> None:
    assert broken(both(WRONG, WRONG)).beside == (
        "two against one: the reference did the same, only the model disagrees"
    )


def test_what_the_other_one_alone_breaks_is_no_finding() -> None:
    with pytest.raises(Inconclusive, match="the reference alone broke TOY-LOOK: look"):
        asyncio.run(both(there=WRONG).repeat(STEPS))


def test_what_the_model_allows_and_the_two_do_differently_is_noted_once_and_ends_the_comparison() -> None:
    walk = both()
    assert isinstance(walk.there.world, LockWorld)
    steps = single([Command.of("lose", who="a")])
    asyncio.run(walk.repeat(steps))
    assert not walk.parted
    walk.there.world.server.holder = ""  # its answer was lost and nothing was taken, which is legal too
    walk.there.possible = Possible(walk.model, [State(), State("a", (100.0, 100.01))])
    asyncio.run(walk.repeat(single([Command.of("free", who="a"), Command.of("free", who="a")])))
    assert list(walk.differences) == ["a frees: freed; the reference: not yours"]
    assert walk.parted


def test_a_deadline_that_only_one_of_them_has_is_waited_for_there() -> None:
    walk = both()
    asyncio.run(walk.repeat(STEPS[:1]))
    walk.there.possible = Possible(walk.model, [State()])
    before = walk.there.clock.now()
    asyncio.run(walk.repeat([WAIT]))
    assert walk.steps[-1] == WAIT
    assert walk.there.clock.now() == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("200 sessionId=b13d8e7e-8c8f-4146-abcd-54d5a0d2d42c", "200 sessionId=01084d5a-7029-4a56-83d3-5b8a1a2a0632"),
        ('{"instanceId":"i-c8c9fbaa710f"}', '{"instanceId":"i-123456789012"}'),
        ("https://127.0.0.1:29372 leads until 1731952000", "https://127.0.0.1:20001 leads until 1731952044"),
        ("token#1 after 0.731", "token#22 after 12.5"),
    ],
)
def test_what_any_two_runs_differ_in_is_not_compared(one: str, other: str) -> None:
    assert normal(one) == normal(other)


@pytest.mark.parametrize(("one", "other"), [("remaining 4", "remaining 3"), ("200 success", "200 queued"), ("a", "b")])
def test_what_a_server_decides_is_compared(one: str, other: str) -> None:
    assert normal(one) != normal(other)


def test_a_second_target_that_can_not_lend_leaves_the_walk_undecided() -> None:
    async def wait() -> None:
        beside = Beside("mine.toml")
        beside.failed(RuntimeError("no node"))
        await beside.begin()

    with pytest.raises(Inconclusive, match=r"mine\.toml, the target beside: no node"):
        asyncio.run(wait())
