"""What two nodes of one cluster hold. Their leader does not change, since nothing here costs it a vote.

A stranger without a server may be a member at either node. It counts in that node's quorum, which the two nodes still
reach together, and it can take no replica, so that a registry change through that node fails.
"""

from dataclasses import dataclass, replace

from holdfast.conformance.lockd.walks.state import Decision
from holdfast.conformance.shared.walks import Span

NODES = ("n1", "n2")
Pairs = frozenset[tuple[str, str]]


def other(node: str) -> str:
    return NODES[1] if node == NODES[0] else NODES[0]


@dataclass(frozen=True)
class Cluster:
    """`strangers` says since when the stranger is a member at a node, `applied` is by node and transaction."""

    leader: str
    term: int
    strangers: tuple[tuple[str, Span], ...] = ()
    registries: tuple[tuple[str, Pairs], ...] = tuple((node, frozenset()) for node in NODES)
    decided: tuple[tuple[str, str], ...] = ()
    applied: tuple[tuple[str, Decision], ...] = ()

    def registry(self, node: str) -> Pairs:
        return dict(self.registries)[node]

    def stranger(self, node: str) -> Span | None:
        return dict(self.strangers).get(node)

    def with_stranger(self, node: str, since: Span | None) -> "Cluster":
        others = [each for each in self.strangers if each[0] != node]
        return replace(self, strangers=tuple(sorted([*others, *([(node, since)] if since else [])])))

    def with_pair(self, node: str, pair: tuple[str, str], *, add: bool) -> "Cluster":
        pairs = self.registry(node) | {pair} if add else self.registry(node) - {pair}
        return replace(self, registries=tuple((name, pairs if name == node else old) for name, old in self.registries))

    def with_decided(self, txn: str, way: str) -> "Cluster":
        return replace(self, decided=tuple(sorted({**dict(self.decided), txn: way}.items())))

    def record(self, node: str, txn: str) -> Decision | None:
        return dict(self.applied).get(f"{node} {txn}")

    def with_applied(self, node: str, txn: str, decision: Decision) -> "Cluster":
        return replace(self, applied=tuple(sorted({**dict(self.applied), f"{node} {txn}": decision}.items())))
