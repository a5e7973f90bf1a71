"""The worlds of the walks, on nodes that are played by spies: every command is performed, in the model's own names."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from holdfast.check.walk.vocabulary import Command
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.client import Lockd
from holdfast.conformance.lockd.membership import nowhere
from holdfast.conformance.lockd.spy import Spy, spies
from holdfast.conformance.lockd.walks.cluster.model import ClusterModel
from holdfast.conformance.lockd.walks.cluster.state import Cluster
from holdfast.conformance.lockd.walks.cluster.world import ClusterWorld
from holdfast.conformance.lockd.walks.commands import all_commands
from holdfast.conformance.lockd.walks.model import LockdModel
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Listed, Shown
from holdfast.conformance.lockd.walks.stage import Stage
from holdfast.conformance.lockd.walks.state import ENDPOINTS, NODE, SPIES, STRANGER, State
from holdfast.conformance.lockd.walks.world import LockdWorld
from holdfast.conformance.shared.stub import Reply
from tests.conformance.lockd.driver import with_driver
from tests.conformance.lockd.sound_node import SPANS


def lives_at(lockd: Lockd, name: str, spy: Spy) -> None:
    cast("dict[str, str]", lockd.deployment.nodes[name].urls)["https"] = spy.endpoint


async def stage_on(lockd: Lockd) -> tuple[Stage, Spy]:
    """Returns a stage whose node is a spy too."""
    (node,) = await spies(lockd, 1)
    lives_at(lockd, "a", node)
    peers = dict(zip(SPIES, await spies(lockd, 2), strict=True))
    places = {who: spy.endpoint for who, spy in peers.items()} | {NODE: node.endpoint, STRANGER: nowhere(9)}
    places |= {name: nowhere(number) for number, name in enumerate(ENDPOINTS) if name not in places}
    return Stage(lockd, "a", peers, lockd.authority.server(name=STRANGER), "island", 5, 1, places), node


def test_every_command_and_every_look_is_performed(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        stage, _ = await stage_on(lockd)
        world = LockdWorld(stage, 5, lambda: None)
        state = State(refusing=frozenset({"s1"}))
        looks = LockdModel(SPANS).looks([state], (Command.of("decide", txn="t1"),))
        for command in (*all_commands(state), *looks):
            assert world.can(command)
            assert (await world.do(command)).what is not None, command

    with_driver(tmp_path, check)


def test_answers_are_told_in_the_names_of_the_model(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        stage, node = await stage_on(lockd)
        world = LockdWorld(stage, 5, lambda: None)
        s1 = stage.spies["s1"]
        node.on(wire.MEMBERS, Reply(200, {"endpoints": sorted([node.endpoint, s1.endpoint])}))
        listed: Listed = (await world.do(Command.of("members"))).what
        assert (set(listed.names), listed.tidy) == ({NODE, "s1"}, True)
        node.on(wire.LEADER, Reply(200, wire.Leader(s1.node_id, s1.endpoint, 9, 1 << 60).fields()))
        shown: Shown = (await world.do(Command.of("leader"))).what
        assert (shown.who, shown.term, shown.sound) == ("s1", 9, True)
        asked: Asked = (await world.do(Command.of("acquire", who="s2", term="above"))).what
        assert (asked.term, asked.named) == (1009, True)
        decided: Decided = (await world.do(Command.of("apply", txn="a1", term="below", **{"as": "commit"}))).what
        assert decided.term == 1008
        changed: Changed = (await world.do(Command.of("register", backend="h1", endpoint="e1"))).what
        assert changed.after == {"s1": False, "s2": False}

    with_driver(tmp_path, check)


def test_every_command_of_a_cluster_is_performed(tmp_path: Path) -> None:
    async def check(lockd: Lockd) -> None:
        pair = await spies(lockd, 2)
        for name, spy in zip(("a", "b"), pair, strict=True):
            lives_at(lockd, name, spy)
        world = ClusterWorld(
            lockd, lockd.authority.server(name=STRANGER), wire.Leader("id-b", pair[1].endpoint, 7, 1), 1
        )
        world.islands = {"n1": "island-1", "n2": "island-2"}
        model, state = ClusterModel(SPANS), Cluster("n2", 7)
        looks: Iterable[Command] = model.looks([state], (Command.of("decide", txn="t1"),))
        for command in (*model.commands(state), *looks):
            assert (await world.do(command)).what is not None, command
        assert {world.relation(Command.of("leave", node=node)) for node in ("n1", "n2")} == {"leader", "follower"}

    with_driver(tmp_path, check, a="https://127.0.0.1:1", b="https://127.0.0.1:1")
