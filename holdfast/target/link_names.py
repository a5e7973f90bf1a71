"""Names of links: `a-b` leads from node a to node b, `a-redis` to its Redis, `a-client` to the clients of a.

Names of nodes may contain `-` themselves (`api-1`), so a link's name can't be cut at any `-`. It is cut where both
sides are ends that exist: a node, or one of `ENDS`, or a stub of the harness (`stub.gc`). A node may be followed by one
of its URLs (`a-b.grpc`), and `sentinel` by a number; both stay with their end. Where two cuts fit
(`a-b-c` with nodes a, a-b, b-c and c) nobody could tell which link is meant, so `clashes` lets the descriptor refuse
such names when it is read, and `split_link` never has to guess.
"""

from collections.abc import Collection, Iterator

# Ends of links that are no nodes.
ENDS = ("redis", "sentinel", "client")
STUB = "stub."


def split_link(subject: str, nodes: Collection[str]) -> tuple[str, str]:
    """Returns the two ends of a link, at least one of which is a node.

    Raises ValueError for a name that is no link between these nodes, or that may mean two links.
    """
    found = list(_cuts(subject, nodes))
    if len(found) == 1:
        return found[0]
    known = ", ".join(nodes)
    if found:
        both = " or ".join(f"{near} to {far}" for near, far in found)
        raise ValueError(f"{subject}: may mean {both}; give the nodes ({known}) other names")
    raise ValueError(f"{subject}: no such link; write <node>-<node>, or <node>-{'|'.join(ENDS)}; the nodes are {known}")


def clashes(nodes: Collection[str]) -> Iterator[str]:
    """Yields the names that mean two things: two links, or a node and a link."""
    ends = (*nodes, *ENDS)
    for subject in sorted({f"{near}-{far}" for near in nodes for far in ends if near != far}):
        if subject in nodes or len(list(_cuts(subject, nodes))) > 1:
            yield subject


def _cuts(subject: str, nodes: Collection[str]) -> Iterator[tuple[str, str]]:
    for place in (index for index, letter in enumerate(subject) if letter == "-"):
        near, far = subject[:place], subject[place + 1 :]
        if _is_end(near, nodes) and _is_end(far, nodes) and {near, far.partition(".")[0]} & {*nodes}:
            yield near, far


def _is_end(name: str, nodes: Collection[str]) -> bool:
    end = name.partition(".")[0]
    return end in nodes or end.rstrip("0123456789") in ENDS or name.startswith(STUB)
