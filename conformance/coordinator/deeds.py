"""Deeds: which node wrote an entry, took the lock, read a queue, as the tap on its link to Redis tells.

    deeds = await context.get(Deeds)        # or the annotation `deeds: Deeds` of a check, which needs `tap`
    writer = await deeds.writer(entry)

An entry that a command wrote is that of the node whose reply has its id. What a script wrote is told by the time: the
entry appeared between its call and its answer. Of several such calls those count that carry the entry's own text, else
those that name its channel. Where calls of two nodes are left `writers` has both, and a finding needs that neither was
allowed to: so look at many entries, not at one. A conclusion from silence needs `tap.nothing_bypassed()`, which
`of_nobody_else` asks for.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from holdfast.check.context import Context
from holdfast.check.finding import Inconclusive, demand
from holdfast.check.tap import Tap
from holdfast.check.timeline import Moment
from holdfast.conformance.coordinator.bus import Entry
from holdfast.conformance.coordinator.client import Cluster
from holdfast.conformance.coordinator.groups import JOB_QUEUES
from holdfast.conformance.coordinator.messages import Job
from holdfast.target.tap import Command

SCRIPTS = ("EVAL", "EVALSHA", "FCALL")
_READS = ("XREADGROUP", "XREAD", "XAUTOCLAIM", "XCLAIM")
# Commands by which a queue may lose entries.
_TRIMS = ("MAXLEN", "MINID")
# Words of SET that set an expiry, and commands that do.
_EXPIRIES = frozenset({"EX", "PX", "EXAT", "PXAT"})
_EXPIRES = frozenset({"EXPIRE", "PEXPIRE", "EXPIREAT", "PEXPIREAT"})
_MOST_SHOWN = 5
# Characters of a word that the tap surely keeps.
_KEPT = 500


class Deeds:
    """Commands of nodes, in the words of the document."""

    taps = True

    def __init__(self, cluster: Cluster, tap: Tap) -> None:
        self.tap = tap
        self._cluster = cluster
        self._names = cluster.names

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(await context.get(Cluster), await context.get(Tap))

    # --- who wrote what

    def writers(self, entry: Entry) -> set[str]:
        """Returns the nodes that may have written an entry; none where it was written past the tap, as by the suite."""
        around = [each for each in self.tap.commands(since=_before(entry.at), until=entry.at) if _spans(each, entry.at)]
        exact = {each.node for each in around if self._wrote(each, entry)}
        if exact:
            return exact
        scripts = [each for each in around if each.name in SCRIPTS]
        for fits in (_carries, _may_name):
            if narrowed := {each.node for each in scripts if fits(each, entry)}:
                return narrowed
        return {each.node for each in scripts}

    def _wrote(self, command: Command, entry: Entry) -> bool:
        """Whether the answer of a command shows that it wrote the entry; other streams may have the same id."""
        if not _answers(command.reply, entry.id):
            return False
        commands = self.transaction_of(command) if command.name == "EXEC" else [command]
        return any(each.name == "XADD" and str(each.words[1]) == entry.channel for each in commands)

    def writes(self, entry: Entry, node: str) -> list[Command]:
        """Returns the commands by which this node may have written an entry of a topic or queue, oldest first."""
        found = self.tap.commands("XADD", "PUBLISH", *SCRIPTS, node=node, until=entry.at)
        return [each for each in found if any(entry.message.said[:_KEPT] == str(word)[:_KEPT] for word in each.words)]

    def first_subscriptions(self, job: Job, node: str) -> dict[str, list[Command]]:
        """Returns the first command by which a node made a group of each of a job's queues, or read it."""
        queues = [self._names.channel(kind, **job.ids) for kind in JOB_QUEUES]
        found = {queue: self.tap.commands("XGROUP", *_READS, *SCRIPTS, key=queue, node=node) for queue in queues}
        return {queue: commands[:1] for queue, commands in found.items()}

    def all_from(self, entries: Iterable[Entry], nodes: Iterable[str], why: str) -> None:
        """Judges that each of these entries comes from one of these nodes."""
        legal = set(nodes)
        for entry in entries:
            who = self.writers(entry)
            if not who:
                raise Inconclusive(f"the tap does not show who wrote {entry.describe()}")
            seen = f"{' or '.join(sorted(who))} wrote {entry.describe()}"
            demand(who & legal, f"only {' and '.join(sorted(legal))} to write it", seen, why)

    def none_from(self, entries: Iterable[Entry], node: str, why: str) -> None:
        """Judges that none of these entries surely comes from this node."""
        for entry in entries:
            only = self.writers(entry) == {node}
            demand(not only, f"nothing written by {node}", f"{node} wrote {entry.describe()}", why)

    # --- the lock

    def claims(self, *, since: Moment | None = None, until: Moment | None = None) -> list[Command]:
        """Returns the commands that may have taken the lock: SET and SETNX on it, and scripts that name it."""
        return self.tap.commands("SET", "SETNX", *SCRIPTS, key=self._names.lock, since=since, until=until)

    def claims_that_succeeded(self) -> list[Command]:
        """Returns the commands that took the lock, as their answers say, oldest first."""
        return [each for each in self.claims() if _took(each)]

    def transaction_of(self, command: Command) -> list[Command]:
        """Returns the commands of the same transaction; none for a command outside of one."""
        if command.transaction is None:
            return []
        mine = (command.node, command.connection, command.transaction)
        return [each for each in self.tap.commands() if (each.node, each.connection, each.transaction) == mine]

    def claimant(self, value: str, *, until: Moment | None = None) -> str:
        """Returns the node whose successful claim put this value into the lock; "" where the tap does not show it."""
        return next((each.node for each in self.claims(until=until) if value in each.words and _took(each)), "")

    # --- reading and acknowledging

    def reads(self, queue: str, *, node: str | None = None, since: Moment | None = None) -> list[Command]:
        """Returns the commands by which nodes read a queue, scripts that name it included."""
        return self.tap.commands(*_READS, *SCRIPTS, key=queue, node=node, since=since)

    def given(self, topic: str, node: str) -> Callable[[Entry], bool]:
        """Returns what says whether a node has been given an entry of a topic: by a read, or as a subscriber."""
        replies = " ".join(str(each.reply) for each in self.reads(topic, node=node))
        pushed = [str(each.words[-1]) for each in self.tap.pushes(topic, node=node)]
        return lambda entry: (
            (bool(entry.id) and entry.id in replies) or entry.message.said[:_KEPT] in (text[:_KEPT] for text in pushed)
        )

    def acknowledges(self, queue: str, *, node: str | None = None, since: Moment | None = None) -> list[Command]:
        return self.tap.commands("XACK", *SCRIPTS, key=queue, node=node, since=since)

    def touches(self, job: Job, *, node: str | None = None, since: Moment | None = None) -> list[Command]:
        """Returns the commands by which nodes read or acknowledge the queues of a job."""
        queues = [self._names.channel(kind, **job.ids) for kind in JOB_QUEUES]
        found = [each for queue in queues for each in self.tap.commands(key=queue, node=node, since=since)]
        return [each for each in found if each.name in (*_READS, *SCRIPTS, "XACK")]

    async def of_nobody_else(self, commands: Sequence[Command], nodes: Iterable[str], what: str, why: str) -> None:
        """Judges that all of these commands come from these nodes, and that nobody went past the tap."""
        await self.tap.nothing_bypassed()
        legal = set(nodes)
        wrong = [each for each in commands if each.node not in legal]
        self.tap.show(wrong[:_MOST_SHOWN])
        told = "; ".join(f"{each.node}: {each.describe()}" for each in wrong[:_MOST_SHOWN])
        demand(not wrong, f"{what} of {' and '.join(sorted(legal)) or 'nobody'} only", told, why)

    def trims(self, *queues: str) -> list[Command]:
        """Returns the commands that may cut entries of these queues (patterns) away."""
        trims = [each for queue in queues for each in self.tap.commands("XTRIM", "XDEL", key=queue)]
        adds = [each for queue in queues for each in self.tap.commands("XADD", key=queue)]
        return [*trims, *(each for each in adds if {str(word).upper() for word in each.words[2:4]} & {*_TRIMS})]

    async def learn_consumers(self) -> None:
        """Tells `cluster.groups` which node reads under which name, where the names contain no ids."""
        for each in self.tap.commands("XREADGROUP"):
            words = [str(word) for word in each.words]
            at = next((place for place, word in enumerate(words) if word.upper() == "GROUP"), -1)
            if 0 <= at < len(words) - 2:
                self._cluster.groups.known_consumers[words[at + 2]] = await self._cluster.id_of(each.node)


def _carries(script: Command, entry: Entry) -> bool:
    """Whether the entry's own text is among the words of the script; the tap keeps the beginning of a long one."""
    data = entry.message.said[:_KEPT]
    return any(str(word)[:_KEPT] == data for word in script.words[1:])


def _may_name(script: Command, entry: Entry) -> bool:
    """Whether the script names the channel, as far as the tap has kept its words."""
    words = [str(word) for word in script.words[1:]]
    return any(entry.channel in word or len(word) > _KEPT for word in words)


def _before(moment: Moment) -> Moment:
    """Reaches back as far as a script may have run."""
    return Moment(moment.lo - 1, moment.lo - 1)


def _spans(command: Command, moment: Moment) -> bool:
    """Whether a moment may lie between a command and its answer."""
    ended = float("inf") if command.replied_at is None else command.replied_at
    return command.at <= moment.hi and ended >= moment.lo


def _answers(reply: Any, entry_id: str) -> bool:
    if isinstance(reply, list):
        return any(_answers(each, entry_id) for each in reply)
    return bool(entry_id) and reply == entry_id


def _took(command: Command) -> bool:
    """Whether a claim succeeded, as its answer says."""
    if isinstance(command.reply, dict):
        return False
    return command.reply not in (None, 0, "0", "")


def takes_in_one_step(claim: Command, transaction: Sequence[Command]) -> bool:
    """Whether a claim sets value and expiry at once: SET with NX and an expiry, a script, or one transaction."""
    if claim.name in SCRIPTS:
        return True
    words = {str(word).upper() for word in claim.words[3:]}
    if claim.name == "SET" and "NX" in words and words & _EXPIRIES:
        return True
    return any(each.name in _EXPIRES for each in transaction)
