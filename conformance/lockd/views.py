"""What the nodes of a cluster have shown of members and leaders, and when two leaders in one term can't be excused.

The spec computes quorums from each node's own member list, and keeps votes in memory. So for a while after a node has
started, or after lists have changed, two majorities need not meet, and two nodes may both lead in one term: the spec
accepts that (it asks to wait for convergence first). What it does not accept is two leaders in one term while the same
processes have known the same members for a whole lease: all that was voted for before has run out by then. A node with
such a list is *settled*. What is shown by settled nodes counts, on any machine (`Unsafe`).
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.check.finding import Unsafe
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.wire import Answer, Leader
from holdfast.conformance.shared.wire import Request

if TYPE_CHECKING:
    from holdfast.conformance.lockd.client import Lockd

# A node, and the valid leader that it shows.
Shown = tuple[str, Leader]


@dataclass(frozen=True)
class View:
    """The members that a node has listed in every answer since then; `pid` is its process."""

    members: tuple[str, ...]
    since: float
    pid: int | None


class Views:
    """Notes every member list and every leader that a node shows."""

    def __init__(self, lockd: "Lockd") -> None:
        self._lockd = lockd
        self._lists: dict[str, View] = {}
        # By term and leader id: the first settled node that showed it.
        self._leaders: dict[int, dict[str, Shown]] = {}

    def note(self, node: str, request: Request, answer: Answer) -> None:
        if request.path == wire.MEMBERS and answer.ok:
            view = View(tuple(sorted(answer.endpoints)), answer.received, self._pid(node))
            known = self._lists.get(node)
            if known is None or (known.members, known.pid) != (view.members, view.pid):
                self._lists[node] = view
        elif request.path == wire.LEADER and answer.has_leader and self.settled(node, answer.sent):
            self._leaders.setdefault(answer.leader.term, {}).setdefault(answer.leader.id, (node, answer.leader))

    def forget(self, node: str) -> None:
        """Notes that the node is started again, so that it knows nothing of before."""
        self._lists.pop(node, None)

    def settled(self, node: str, at: float) -> bool:
        """Whether the same process had known the same members, itself among them, for a whole lease by then."""
        view, T = self._lists.get(node), self._lockd.T
        if view is None or view.pid != self._pid(node) or self._lockd.endpoint(node) not in view.members:
            return False
        return view.since < at - T.leader_ttl - T.clock_slack

    def rivals(self) -> tuple[Shown, Shown] | None:
        """Returns two leaders of one term that settled nodes have shown, if there were any."""
        for leaders in self._leaders.values():
            if len(leaders) > 1:
                one, other, *_ = leaders.values()
                return one, other
        return None

    async def judge(self, one: Shown, other: Shown) -> None:
        """Raises Unsafe for two leaders of one term if every running node is settled and both list the same."""
        asked, nodes = time.monotonic(), [node for node in self._lockd.nodes if self._runs(node)]
        for node in nodes:
            await self._lockd.members(node)
        lists = {self._lists[node].members for node in (one[0], other[0]) if node in self._lists}
        if len(lists) == 1 and all(self.settled(node, asked) for node in nodes):
            raise two_leaders(one, other)

    def _runs(self, node: str) -> bool:
        return self._pid(node) is not None or not self._lockd.context.target.startable

    def _pid(self, node: str) -> int | None:
        return self._lockd.deployment.nodes[node].pid


def two_leaders(one: Shown, other: Shown) -> Unsafe:
    seen = "; ".join(f"{node} shows {leader.describe()}" for node, leader in (one, other))
    return Unsafe([f"one leader in term {one[1].term}"], seen, "nodes that have known the same members for a lease")


def two_in_one_term(seen: Mapping[str, Leader | None]) -> tuple[Shown, Shown] | None:
    """Returns two nodes that show different leaders of the same term."""
    shown = [(node, leader) for node, leader in seen.items() if leader]
    for place, one in enumerate(shown):
        for other in shown[place + 1 :]:
            if one[1].term == other[1].term and one[1].id != other[1].id:
                return one, other
    return None
