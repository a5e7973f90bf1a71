"""Nodes by role: how many of each a deployment has, in which order they start, and what further ones are called.

A *role* is what kind of node a process is: `api` and `worker` of one target run different programs. Nodes of one role
are alike, so that a check which needs more of them than the descriptor lists gets copies: the last entry of that role
under a numbered name (`worker-3`; `n4` where the target has only the nameless role).

Order: a node starts once every node of the roles in its `after` is ready. Roles that a deployment does not have are no
reason to wait: a check may play them itself by stubs. `problems` refuses circles, so there is always a node that may
start next.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from holdfast.target.link_names import ENDS, clashes
from holdfast.target.ready import Ready

NODE = "node"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")


@dataclass(frozen=True)
class Start:
    """A command, or a Python entry point that the guardian can fork without a cold start."""

    argv: tuple[str, ...] = ()
    python: str | None = None
    args: tuple[str, ...] = ()

    def words(self) -> tuple[str, ...]:
        return self.argv or self.args


@dataclass(frozen=True)
class Listener:
    """Where something of a node is asked over HTTP: the name of the URL ("" for its main one), and the path there."""

    path: str
    url: str = ""

    def at(self, urls: Mapping[str, str]) -> str:
        """Returns the whole address; "" for a node that has no such URL."""
        base = urls.get(self.url) if self.url else (urls.get("http") or urls.get("https"))
        return f"{base}{self.path}" if base else ""


@dataclass(frozen=True)
class NodeSpec:
    """One node as the descriptor has it; `start` is None for a node that Holdfast does not start.

    `ready` is None only where nothing can be asked: a node without URLs that its operator runs.
    """

    name: str
    urls: Mapping[str, str]
    start: Start | None
    env: Mapping[str, str]
    ready: Ready | None
    hooks: Mapping[str, str]
    ready_as: str = ""
    role: str = NODE
    after: tuple[str, ...] = ()
    metrics: Listener | None = field(default=None)

    def mentions(self, *placeholders: str) -> bool:
        """Whether its command or environment contains one of the placeholders."""
        words = [*self.env.values(), *(self.start.words() if self.start else ())]
        return any(placeholder in word for word in words for placeholder in placeholders)


def roles_of(nodes: Sequence[NodeSpec]) -> tuple[str, ...]:
    """Returns the roles, in the order of the descriptor."""
    return tuple(dict.fromkeys(node.role for node in nodes))


def counts_for(nodes: Sequence[NodeSpec], asked: int | Mapping[str, int]) -> dict[str, int]:
    """Returns how many nodes of each role are meant.

    A number is that of the first role, with one node of every other; a table names all roles that there are to be.
    Raises ValueError for a role that no node has.
    """
    roles = roles_of(nodes)
    if isinstance(asked, int):
        return {role: asked if role == roles[0] else 1 for role in roles}
    if unknown := [role for role in asked if role not in roles]:
        raise ValueError(f"no node has the role {unknown[0]!r}; there are: {', '.join(roles)}")
    return {role: asked[role] for role in roles if role in asked}


def counted(nodes: Sequence[NodeSpec], asked: int | Mapping[str, int]) -> tuple[NodeSpec, ...]:
    """Returns as many nodes of each role as asked: the listed ones first, then copies."""
    counts = counts_for(nodes, asked)
    found = {role: [node for node in nodes if node.role == role][:count] for role, count in counts.items()}
    taken = {node.name for node in nodes}
    for role, count in counts.items():
        while len(found[role]) < count:
            found[role].append(further(nodes, role, taken))
            taken.add(found[role][-1].name)
    return tuple(node for each in found.values() for node in each)


def further(nodes: Sequence[NodeSpec], role: str, taken: Collection[str], name: str | None = None) -> NodeSpec:
    """Returns one more node of this role: of this name, else under the first numbered name that is not taken."""
    alike = [node for node in nodes if node.role == role]
    if not alike:
        raise ValueError(f"no node has the role {role!r}; there are: {', '.join(roles_of(nodes))}")
    if name is None:
        stem = "n" if role == NODE else f"{role}-"
        name = next(one for number in range(len(alike) + 1, 10_000) if (one := f"{stem}{number}") not in taken)
    return replace(alike[-1], name=name)


def waves(nodes: Sequence[NodeSpec]) -> Iterator[list[NodeSpec]]:
    """Yields the nodes that may start at once, then those that may once these are ready, and so on."""
    left = list(nodes)
    while left:
        waiting_for = {node.role for node in left}
        wave = [node for node in left if not waiting_for & set(node.after)]
        if not wave:
            raise ValueError(f"[[node]] after: {', '.join(waiting_for)} wait for each other")
        yield wave
        left = [node for node in left if node not in wave]


def problems(nodes: Sequence[NodeSpec]) -> Iterator[str]:
    """Yields what is wrong with the nodes of a descriptor as a whole, with the remedy."""
    names, roles = [node.name for node in nodes], roles_of(nodes)
    for name in dict.fromkeys((*names, *roles)):
        if not _NAME.fullmatch(name):
            yield f"[[node]] {name}: a name of a node or role has letters, digits, - and _ only"
    yield from (f"[[node]] {name}: is there twice; give each node its own name" for name in _repeated(names))
    yield from (f"[[node]] {name}: means another part of a deployment; choose another" for name in {*names} & {*ENDS})
    for subject in clashes(names):
        yield f"[[node]] {subject}: two links, or a node and a link, would have this name; choose other names"
    for name in {*names} & {*roles}:
        if any(node.role != name for node in nodes if node.name == name):
            yield f"[[node]] {name}: is the role of another node; choose another name"
    for node in nodes:
        for role in node.after:
            if role not in roles:
                yield f"[[node]] {node.name} after: no node has the role {role!r}; there are: {', '.join(roles)}"
    try:
        list(waves(nodes))
    except ValueError as error:
        yield str(error)


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})
