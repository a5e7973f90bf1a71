"""Users of lockd, over mutual TLS. Works with Locust directly: `locust -f load/lockd.py --headless --campaign L2`.

Requests and what answers mean come from the suite's own `wire`. A call is made as the coordinator client, as a node
(with its own bundle) or as a member that the campaign makes up (with a certificate of the target's CA).
"""

import hashlib
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from typing import Any, ClassVar

import gevent
from locust.contrib.fasthttp import FastHttpSession

from holdfast.check.finding import NotObservable
from holdfast.check.history import Outcome
from holdfast.conformance.lockd import wire
from holdfast.conformance.lockd.identities import Authority, Identity, read_identity
from holdfast.conformance.lockd.wire import Answer
from holdfast.conformance.shared.wire import Request
from holdfast.load.generator import Behaviour, OpenUser, Refused
from holdfast.load.locustfile import options, plan_of_this_run
from holdfast.load.messages import take_part

_LOOK_EVERY = 0.2
# Connections to each node that are open before the first request is due: a handshake costs more than a request.
_WARM = 12
# What a decision that can't be made now is answered with.
_NOT_NOW = ("tc_not_leader", "tc_unavailable")
# Refusals of an apply that come before anything was written.
_FENCED = ("tc_term_stale", "tc_term_required", "tc_unavailable")


class LockdUser(OpenUser):
    """Calls nodes as the coordinator client, unless another identity is named."""

    abstract = True
    answer = Answer

    def tls(self) -> ssl.SSLContext | None:
        given = self.plan.credentials.get("tc_client_bundle")
        identity = read_identity("tc-client", str(given)) if given else self.authority.coordinator_client()
        return identity.client_context

    @cached_property
    def authority(self) -> Authority:
        if not (given := self.plan.credentials.get("ca")):
            raise NotObservable("[credentials] ca: a PEM file with the CA certificate and its key")
        return Authority.read(str(given))

    def node_identity(self, name: str) -> Identity | None:
        """Returns a node's own identity, where the target gives its bundle."""
        bundles = self.plan.credentials.get("server_bundle")
        return read_identity(name, bundles[name]) if isinstance(bundles, dict) and name in bundles else None

    def as_one(self, identity: Identity) -> FastHttpSession:
        """Returns what makes calls as this identity."""
        return self.speaker(identity.client_context)

    def call(self, request: Request, name: str, node: int, by: FastHttpSession | None = None) -> Answer:
        answer = self.ask(request, name, node=node, by=by)
        assert isinstance(answer, Answer)
        return answer


def code_of(answer: Answer, *expected: str) -> str:
    """Returns what an answer says: ok, one of the codes that may come here, no answer, or another one."""
    if answer.ok:
        return "ok"
    if not answer.answered:
        return "no answer"
    return answer.code if answer.code in expected else f"another answer: {answer.status} {answer.code}".rstrip()


class Cluster(Behaviour):
    """The base of all: nodes that know each other and follow one leader."""

    user: LockdUser

    def arrange(self) -> None:
        if self.user.first == 0:
            self.introduce()
        self.within("cluster_leader_max", self.agreed, "the nodes do not follow one leader")

    def introduce(self) -> None:
        """Announces every node to every node, instead of waiting for their own announces."""
        for node in self.plan.nodes:
            if (identity := self.user.node_identity(node.name)) is not None:
                speaker = self.user.as_one(identity)
                for other in range(len(self.plan.nodes)):
                    self.user.call(wire.announce(node.url), "(arranging)", other, speaker)

    def agreed(self) -> bool:
        """Whether all nodes list as many members as there are nodes, and show one valid leader."""
        everywhere = range(len(self.plan.nodes))
        seen = [self.user.call(wire.leader(), "(arranging)", node) for node in everywhere]
        listed = {len(self.user.call(wire.members(), "(arranging)", node).endpoints) for node in everywhere}
        leaders = {(each.leader.id, each.leader.term) for each in seen if each.has_leader}
        return all(each.has_leader for each in seen) and len(leaders) == 1 and listed == {len(self.plan.nodes)}

    def within(self, bound: str, holds: Callable[[], bool], otherwise: str) -> None:
        """Waits up to twice a bound of the catalogue. Raises Refused."""
        until = time.monotonic() + 2 * self.plan.numbers[bound]
        while not holds():
            if time.monotonic() > until:
                raise Refused(f"could not arrange it: {otherwise}")
            gevent.sleep(_LOOK_EVERY)

    def xid(self, number: int) -> str:
        return wire.xid(hashlib.sha256(f"{self.plan.run}-{number}".encode()).digest()[:12])


class Deciding(Cluster):
    """Decides through every node in turn. At the end each decision that was acknowledged is asked for once more."""

    def __init__(self, user: LockdUser) -> None:
        super().__init__(user)
        self.decided: list[int] = []

    def arrive(self, number: int, due: float) -> None:
        answer = self.user.call(wire.decide(self.xid(number), "commit"), "decide", number)
        said = code_of(answer, *_NOT_NOW)
        self.user.note("decide", due, answer, "commit" if said == "ok" else said)
        if said == "ok":
            self.decided.append(number)
        # A refusal may come after the effect: a node whose forwarded call broke off does not know.
        outcome = Outcome.OK if said == "ok" else Outcome.UNKNOWN
        self._recorded("decide", number, outcome, answer)

    def _recorded(self, what: str, number: int, outcome: Outcome, answer: Answer) -> None:
        self.user.record("user", what, "", self.xid(number), outcome, None, (answer.sent, answer.received))

    def finish(self) -> None:
        self.user.together([partial(self._look_back, number) for number in self.decided])

    def _look_back(self, number: int) -> None:
        """Asks for the opposite: a decision that is there refuses it, and one that was lost would let it pass."""
        durable = bool(self.plan.dialect.get("shared_store"))
        for turn in range(len(self.plan.nodes)):
            answer = self.user.call(wire.decide(self.xid(number), "rollback"), "(looking back)", number + turn)
            if answer.code == "txn_conflict":
                return self._recorded("applied", number, Outcome.OK, answer)
            if answer.ok and durable:
                return self.user.note("looking back", answer.sent, answer, "lost")
        # The store of a node that was killed may be gone with it, or nobody answers now.
        return self._recorded("applied", number, Outcome.UNKNOWN, answer)


class Looking(Cluster):
    """Asks every node in turn who leads."""

    def arrange(self) -> None:
        super().arrange()
        nodes = range(len(self.plan.nodes))
        self.user.together([partial(self.user.call, wire.leader(), "(arranging)", node) for node in nodes] * _WARM)

    def __init__(self, user: LockdUser) -> None:
        super().__init__(user)
        self.first: tuple[str, int] | None = None

    def arrive(self, number: int, due: float) -> None:
        node = number % len(self.plan.nodes)
        answer = self.user.call(wire.leader(), "look", node)
        self.user.note("look", due, answer, self._seen(answer))
        if answer.has_leader:
            leader = answer.leader
            span = (answer.sent, answer.received)
            name = self.plan.nodes[node].name
            self.user.record("user", "leader", name, leader.term, Outcome.OK, leader.id or leader.endpoint, span)

    def _seen(self, answer: Answer) -> str:
        if not answer.has_leader:
            return "no leader" if answer.ok else code_of(answer)
        shown = (answer.leader.id, answer.leader.term)
        self.first = self.first or shown
        return "the leader" if shown == self.first else "another leader"


class Announcing(Behaviour):
    """Many members announce themselves to one node, which lists all of them, sorted."""

    user: LockdUser

    def __init__(self, user: LockdUser) -> None:
        super().__init__(user)
        self.speakers: dict[int, FastHttpSession] = {}

    @property
    def members(self) -> int:
        return int(self.plan.numbers["members"])

    def arrange(self) -> None:
        if len(self.plan.nodes) > 1:
            raise Refused("could not arrange it: this campaign needs a node without other real members")
        for member in range(self.user.first, self.members, self.user.of):
            identity = self.user.authority.server(f"m-{self.plan.run}-{member}")
            self.speakers[member] = self.user.as_one(identity)

    def endpoint(self, member: int) -> str:
        return f"https://127.0.0.1:{20000 + member}"

    def arrive(self, number: int, due: float) -> None:
        member = number % self.members
        if member not in self.speakers:  # another worker made it; each has as many of its own
            member = min(self.speakers, key=lambda mine: abs(mine - member))
        answer = self.user.call(wire.announce(self.endpoint(member)), "announce", 0, self.speakers[member])
        self.user.note("announce", due, answer, code_of(answer))

    def finish(self) -> None:
        answer = self.user.call(wire.members(), "list", 0)
        self.user.note("list", answer.sent, answer, self._listed(answer))

    def _listed(self, answer: Answer) -> str:
        if not answer.ok:
            return code_of(answer)
        if answer.endpoints != sorted(answer.endpoints):
            return "not sorted"
        missing = {self.endpoint(member) for member in self.speakers} - set(answer.endpoints)
        return f"{len(missing)} members missing" if missing else "complete and sorted"


class Registering(Cluster):
    """Writers register and unregister, each a hash of its own and one that all share; then all registries are equal."""

    def arrange(self) -> None:
        super().arrange()
        self.speaker = self.user.as_one(self.user.authority.server(name="writer"))

    def hash_of(self, writer: int) -> str:
        return f"shared-{self.plan.run}" if writer % 2 else f"own-{self.plan.run}-{writer}"

    def arrive(self, number: int, due: float) -> None:
        turn, writer = divmod(number, int(self.plan.numbers["writers"]))
        change, name = (wire.unregister, "unregister") if turn % 2 else (wire.register, "register")
        request = change(self.hash_of(writer), f"https://127.0.0.1:{20000 + writer}")
        answer = self.user.call(request, name, number, self.speaker)
        self.user.note(name, due, answer, code_of(answer, "tc_rm_replication_failed"))

    def finish(self) -> None:
        until = time.monotonic() + self.plan.numbers["registry_equal_max"]
        while not (equal := self._equal()) and time.monotonic() < until:
            gevent.sleep(_LOOK_EVERY)
        answer = self.user.call(wire.backends(), "registries", 0)
        self.user.note("registries", answer.sent, answer, "equal" if equal else "different")

    def _equal(self) -> bool:
        answers = [self.user.call(wire.backends(), "(looking back)", node) for node in range(len(self.plan.nodes))]
        seen = [
            {name: sorted(backend.endpoints) for name, backend in each.backends.items() if self.plan.run in name}
            for each in answers
        ]
        return all(each.ok for each in answers) and all(each == seen[0] for each in seen)


class Applying(Cluster):
    """Applies under the term that a node shows, under an older one and under none; only the first may be accepted."""

    def __init__(self, user: LockdUser) -> None:
        super().__init__(user)
        self.terms: dict[int, int] = {}

    def arrive(self, number: int, due: float) -> None:
        kind, node = ("current", "old", "none")[number % 3], (number // 3) % len(self.plan.nodes)
        if kind == "current":
            self._look(node)
        known = self.terms.get(node, 0)
        term = {"current": known, "old": max(known - 1, 0), "none": 0}[kind]
        if kind == "old" and not term:
            kind = "none"  # before the first change of leaders there is no older one
        request = wire.apply(self.xid(number), "commit", [wire.participant("default", f"k-{number}")], term=term)
        answer = self.user.call(request, kind, node)
        self.user.note(kind, due, answer, code_of(answer, *_FENCED))
        span = (answer.sent, answer.received)
        outcome = Outcome.OK if answer.ok else Outcome.FAILED if answer.code in _FENCED else Outcome.UNKNOWN
        self.user.record("user", "apply", self.plan.nodes[node].name, term, outcome, None, span)

    def _look(self, node: int) -> None:
        answer = self.user.call(wire.leader(), "(looking)", node)
        if answer.has_leader:
            self.terms[node] = max(answer.leader.term, self.terms.get(node, 0))


class Lockd(LockdUser):
    behaviours: ClassVar[Mapping[str, Any]] = {
        "deciding": Deciding,
        "looking": Looking,
        "announcing": Announcing,
        "registering": Registering,
        "applying": Applying,
    }


options("lockd")
take_part(plan_of_this_run)
