"""A sound lockd node in memory, with a clock of its own, for walks of the model without a network.

It does what the spec says and no more, and looks at its member list for elections once a tick, as a node may. It can be
told to have another habit: one that the spec leaves open, or one that is wrong. Peers are those that the model knows.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.check.walk.play import Clock
from holdfast.check.walk.vocabulary import NO_NODE, Command, Seen
from holdfast.conformance.lockd.walks.sights import Asked, Changed, Decided, Heard, Listed, Registered, Shown
from holdfast.conformance.lockd.walks.spans import Spans
from holdfast.conformance.lockd.walks.state import GONE, NODE, SPIES, STRANGER, WRITES
from holdfast.conformance.lockd.wire import STATUS_OF, Answer

SPANS = Spans(
    leader_ttl=3, short_ttl=1.5, membership_ttl=9, tolerance=0.25, lag=4, elected=8, stepped_down=4
)  # as at a time scale of 0.2
TAKES, STEP, TICK, TRY = 0.01, 0.05, 3.0, 0.4
RUNG = 1000


@dataclass
class Node:
    """`lease` is when its leadership ends, 0 if it does not lead; `peers` is the list that its election knows."""

    habit: str = ""
    now: float = 100.0
    members: dict[str, tuple[str, float]] = field(default_factory=dict)
    here: bool = True
    refusing: set[str] = field(default_factory=set)
    troubles: dict[str, str] = field(default_factory=dict)
    term: int = 1
    lease: float = 103.0
    holder: str = ""
    voted: int = 0
    until: float = 0.0
    observed: bool = False
    peers: set[str] = field(default_factory=set)
    report: tuple[str, int, float] = ("", 0, 0.0)
    ticked: float = 100.0
    back: float = 0.0
    tried: float = 100.0
    renewed: float = 100.0
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    stamps: dict[str, int] = field(default_factory=dict)
    counter: int = 0
    kept: dict[str, set[tuple[str, str]]] = field(default_factory=lambda: {who: set() for who in SPIES})
    records: dict[str, tuple[str, int]] = field(default_factory=dict)

    def pass_until(self, when: float) -> None:
        while self.now < when:
            self.now = min(when, self.now + STEP)
            self._tick()

    def _tick(self) -> None:
        late = {"members stay": 1000.0}.get(self.habit, 0.0)
        self.members = {who: each for who, each in self.members.items() if self.now < each[1] + 9 + late}
        if self.now >= self.ticked + TICK or self.habit == "notices at once":
            self.ticked, self.peers = self.now, {at for at, _ in self.members.values()}
        if self.holder and self.now >= self.until:
            self.holder = ""
        if self.habit == "leads when its list is empty" and not self.here:
            self.term += not self.members and not self.lease
            self.lease = 0.0 if self.members else self.now + 3
        if not self.here or self.off:
            return
        if self.lease:
            self._renew()
        elif not self.holder and self.now >= self.tried + TRY:
            self.tried = self.now
            who, term, until = self.report
            learns = until > self.now and self.habit != "asks nobody for a term"
            if learns and who in self.peers and not self.troubles.get(who):
                self.holder, self.voted, self.until, self.observed = who, term, until, True
                self.until += 1000 if self.habit == "a learned leader is never forgotten" else 0
                self.term = max(self.term, term)
            elif self._quorum():
                asked = term if who in self.peers and self.habit != "asks nobody for a term" else 0
                self.term, self.lease, self.renewed = max(self.term, asked) + 1, self.now + 3, self.now

    def _renew(self) -> None:
        if self.now >= self.renewed + 1 and (self._quorum() or self.habit == "leads without a quorum"):
            self.renewed, self.lease = self.now, self.now + 3
        elif self.now >= self.lease or (self.habit == "steps down at once" and self.now >= self.renewed + 1):
            self.lease, self.tried = 0.0, self.now

    def _quorum(self) -> bool:
        granted = sum(each in SPIES and each not in self.refusing and not self.gone(each) for each in self.peers)
        return 1 + granted >= (len(self.peers) + 1) // 2 + 1

    def gone(self, who: str) -> bool:
        return who == STRANGER or self.troubles.get(who) == GONE

    @property
    def off(self) -> bool:
        """Whether it has come back and waits for its next tick to take part in elections again."""
        return self.habit == "takes part with its next tick" and self.ticked < self.back

    @property
    def listed(self) -> list[str]:
        return sorted({at for at, _ in self.members.values()} | ({NODE} if self.here else set()))

    @property
    def leader(self) -> tuple[str, int, float]:
        if self.lease > self.now:
            return NODE, self.term, self.lease
        if self.holder and (self.observed or self.habit == "a vote is shown"):
            return self.holder, self.voted, self.until
        return "", 0, 0.0


@dataclass
class MemoryWorld:
    """Performs the commands of a walk on a node in memory."""

    node: Node = field(default_factory=Node)
    highest: int = 1
    term: int = 1
    # Seconds that pass after a command which waits for something.
    idle: float = 0.0

    def clock(self) -> Clock:
        async def sleep(seconds: float, _why: str) -> None:
            self.node.pass_until(self.node.now + seconds)

        return Clock(lambda: self.node.now, sleep)

    def can(self, command: Command) -> bool:
        return command.get("term") != "below" or self.term > 1

    def relation(self, _command: Command) -> str:
        return NO_NODE

    async def close(self) -> None:
        return None

    async def do(self, command: Command) -> Seen:
        sent = self.node.now
        what = getattr(self, f"_{command.name}")(command)
        self.node.pass_until(sent + TAKES)
        said = what if isinstance(what, Answer) else getattr(what, "answer", None)
        seen = Seen(sent, self.node.now, what, said.describe() if said else str(what))
        self.node.pass_until(self.node.now + self.idle)
        self.idle = 0.0
        return seen

    def _answer(self, code: str = "", **fields: Any) -> Answer:
        status = STATUS_OF[code] if code else 200
        body = {"error": code} if code else fields
        return Answer(status, {}, body, "", self.node.now, self.node.now, self.node.now)

    def _ms(self, at: float) -> int:
        return round(at * 1000)

    def _list(self, **fields: Any) -> Listed:
        names = tuple(self.node.listed)
        return Listed(self._answer(endpoints=list(names), **fields), names)

    def _announce(self, command: Command) -> Listed:
        who, node = command.get("who"), self.node
        node.members[who] = (command.get("at") or who, node.now)
        return self._list(expires_at_unix=self._ms(node.now + 9))

    def _depose(self, command: Command) -> Listed:
        self.node.refusing.add(command.get("who"))
        listed = self._announce(command)
        self.idle = 8.0
        return listed

    def _leave(self, command: Command) -> Listed:
        self.node.members.pop(command.get("who"), None)
        if named := command.get("naming") if self.node.habit == "a leave may name another" else "":
            self.node.members.pop(named, None)
        return self._list()

    def _exit(self, _command: Command) -> Listed:
        node = self.node
        told = {each: 1 for each in node.listed if each in SPIES}
        gone = dict.fromkeys(told, (node.term,) if node.lease else ())
        if node.habit == "leaves without a release":
            gone = {}
        node.here, node.lease = False, 0.0
        return replace(self._list(), leaves=told, releases=gone)

    def _return(self, _command: Command) -> Listed:
        node = self.node
        node.here, node.tried, node.back = True, node.now, node.now
        node.holder = "" if node.habit == "forgets leases outside" else node.holder
        return self._list()

    def _intrude(self, _command: Command) -> Answer:
        return self._answer("tc_forbidden")

    def _malformed(self, command: Command) -> Answer:
        if self.node.habit == "takes what is malformed" and command.get("call") == "announce with a user":
            self.node.members[STRANGER] = (STRANGER, self.node.now)
            return self._answer()
        return self._answer("invalid_body")

    def _votes(self, command: Command) -> bool:
        (self.node.refusing.discard if command.flag("on") else self.node.refusing.add)(command.get("who"))
        return True

    def _trouble(self, command: Command) -> bool:
        self.node.troubles[command.get("who")] = command.get("how")
        return True

    def _report(self, command: Command) -> Asked:
        term = self._term_of("above")
        self.node.report = (command.get("who"), term, self.node.now + 3)
        return Asked(self._answer(), term, 3.0)

    def _term_of(self, named: str) -> int:
        terms = {"": 0, "below": self.term - 1, "current": self.term}
        self.highest = max(self.highest, term := terms.get(named, self.highest + RUNG))
        return term

    def _acquire(self, command: Command) -> Asked:
        node, who, term = self.node, command.get("who"), self._term_of(command.get("term"))
        ttl, code = 1.5 if command.flag("short") else 3.0, ""
        kept = max(node.term, node.voted) if node.habit == "remembers votes" else node.term
        current = node.term if node.lease else node.voted if node.holder else kept
        if not node.here or node.off:
            code = "tc_unavailable"
        elif term < current or (term == current and not node.holder and not node.lease):
            code = "tc_term_stale"
        elif node.holder == who:
            code = "tc_lease_active" if term > node.voted else ""
        elif (node.lease or node.holder) and node.habit != "a higher term steals":
            code = "tc_lease_active"
        if code:
            return Asked(self._answer(code), term, ttl)
        node.observed = node.observed and node.holder == who
        node.holder, node.voted, node.until, node.lease, self.term = who, term, node.now + ttl, 0.0, term
        return Asked(self._answer(granted=True, expires_at=self._ms(node.until)), term, ttl)

    def _renew(self, command: Command) -> Asked:
        node, term = self.node, self._term_of(command.get("term"))
        ttl = 1.5 if command.flag("short") else 3.0
        if node.lease or (node.holder, node.voted) != (command.get("who"), term):
            stale = term < (node.term if node.lease else node.voted)
            stale = stale and not node.off
            return Asked(self._answer("tc_term_stale" if stale else "tc_lease_active"), term, ttl)
        node.observed, node.until, node.term = True, node.now + ttl, max(node.term, term)
        return Asked(self._answer(renewed=True), term, ttl)

    def _release(self, command: Command) -> Asked:
        node, term = self.node, self._term_of(command.get("term"))
        if node.holder and node.voted == term and node.holder == command.get("who") and not node.lease:
            node.holder = "" if node.habit != "a release is ignored" else node.holder
            return Asked(self._answer(released=True), term)
        return Asked(self._answer("tc_lease_active"), term)

    def _register(self, command: Command) -> Changed:
        return self._change(command, add=True)

    def _unregister(self, command: Command) -> Changed:
        return self._change(command, add=False)

    def _change(self, command: Command, *, add: bool) -> Changed:
        node, pair = self.node, (command.get("backend"), command.get("endpoint"))
        before = {who: pair in node.kept[who] for who in SPIES}
        members = [each for each in node.listed if each != NODE] if not command.flag("replica") else []
        ill = [each for each in members if node.gone(each) or node.troubles.get(each)]
        took = [] if any(node.troubles.get(each) != WRITES for each in ill) else [e for e in members if e not in ill]
        if ill and node.habit == "sees what changes nothing" and (pair in node.pairs) == add:
            ill, took = [], []
        if not ill or node.habit == "no rollback":
            self._store(pair, add=add)
        replicas = {who: int(who in took) for who in SPIES}
        if not ill:
            for who in took:
                (node.kept[who].add if add else node.kept[who].discard)(pair)
        after = {who: pair in node.kept[who] for who in SPIES}
        ends = tuple(sorted(endpoint for backend, endpoint in node.pairs if backend == pair[0]))
        answer = self._answer("tc_rm_replication_failed") if ill else self._answer()
        return Changed(answer, ends, before, after, replicas)

    def _store(self, pair: tuple[str, str], *, add: bool) -> None:
        node = self.node
        if (pair in node.pairs) != add:
            node.counter += 1
            node.stamps[pair[0]] = node.counter
        if add:
            node.pairs[pair] = 1
        else:
            node.pairs.pop(pair, None)

    def _decide(self, command: Command) -> Decided:
        node, (who, term, _) = self.node, ("", 0, 0.0) if self.node.off else self.node.leader
        txn, way = command.get("txn"), command.get("as")
        forwarded = {each: int(each == who and not node.gone(each)) for each in SPIES}
        if not node.here or not who:
            answer = self._answer("tc_unavailable")
        elif who != NODE:
            answer = self._answer("tc_not_leader") if node.gone(who) else self._answer(state=way)
        else:
            answer = self._recorded(txn, way, term)
        said = node.term - 1 if node.habit == "an old term is passed on" else node.term
        reached = txn == "t3" and who == NODE and ("h1", "s1") in node.pairs and not node.gone("s1")
        return Decided(answer, leader=who, forwarded=forwarded, applied=(said,) if reached else ())

    def _recorded(self, txn: str, way: str, term: int) -> Answer:
        known = self.node.records.setdefault(txn, (way, term))
        same = known[0] == way or self.node.habit == "the last decision wins"
        return self._answer(state=way) if same else self._answer("txn_conflict")

    def _apply(self, command: Command) -> Decided:
        term, (who, current, _) = self._term_of(command.get("term")), self.node.leader
        who = "" if self.node.off else who
        code = "" if who else "tc_unavailable"
        code = code or ("" if term else "tc_term_required")
        code = code or ("" if term == current else "tc_term_stale")
        answer = self._answer(code) if code else self._recorded(command.get("txn"), command.get("as"), term)
        return Decided(answer, term)

    def _replay(self, command: Command) -> Decided:
        known = self.node.records.get(command.get("txn"))
        return Decided(self._answer(state=known[0]) if known else self._answer("txn_not_found"))

    def _leader(self, _command: Command) -> Shown:
        node = self.node
        who, term, until = node.leader if not node.off and (node.here or node.lease) else ("", 0, 0.0)
        if who:
            self.term, self.highest = term, max(self.highest, term)
        return Shown(self._answer(), who, who, term, True, until - self.node.now)

    def _members(self, _command: Command) -> Listed:
        return self._list()

    def _registry(self, _command: Command) -> Registered:
        stamps = {backend: self.node.stamps[backend] for backend in {pair[0] for pair in self.node.pairs}}
        return Registered(self._answer(), tuple(sorted(self.node.pairs)), stamps)

    def _heard(self, _command: Command) -> Heard:
        return Heard(0, 0, ())


WAYS_TO_BE_SOUND = (
    "",
    "notices at once",
    "steps down at once",
    "remembers votes",
    "takes part with its next tick",
    "forgets leases outside",
    "leads when its list is empty",
    "sees what changes nothing",
)
WAYS_TO_BE_WRONG = (
    "members stay",
    "leads without a quorum",
    "a vote is shown",
    "a leave may name another",
    "a higher term steals",
    "no rollback",
    "the last decision wins",
)
