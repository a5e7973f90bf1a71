"""Campaigns in which clients of the admission service lose their connection and come back with their token.

Sockets are carried by asyncio behind the bridge; attempts go out like all others.
"""

import time
from dataclasses import dataclass
from functools import partial

import gevent

from holdfast.check.history import Outcome
from holdfast.conformance.admission import wire
from holdfast.conformance.admission.wire import Answer
from holdfast.load.admitting import Admissions, AdmissionUser, Direct, outcome_of
from holdfast.load.bridge import Bridge, BridgeError
from holdfast.load.generator import Refused

_CLIENT = "holdfast.load.sockets:Sockets"
# A client that could not come back tries again after so long.
_AGAIN = 0.2
# Twice in each interval a client shows that it is there.
_BEATS = 2


@dataclass
class Client:
    """A client with a session: on which node its socket is, and the token to come back with."""

    number: int
    node: int
    session: str = ""
    token: str = ""
    socket: int = 0


class Sockets(Admissions):
    """The base: clients with sockets."""

    def __init__(self, user: AdmissionUser) -> None:
        super().__init__(user)
        self.bridge = Bridge(_CLIENT)

    def joined(self, number: int) -> Client:
        """Lets one in and opens its socket; not measured. Raises Refused."""
        client = Client(number, number % len(self.plan.nodes))
        answer = self.attempt(client, "(arranging)", client.node)
        if answer.outcome != "success" or not self.attach(client):
            raise Refused(f"could not arrange it: {answer.describe()}, and its socket was {client.socket or 'refused'}")
        return client

    def attempt(self, client: Client, name: str, node: int) -> Answer:
        """Makes an attempt, with the token if there is one; what comes back is kept."""
        request = self.user.codec.connect(
            self.instance,
            character=self.character(client.number),
            build=self.user.build,
            token=client.token or None,
        )
        answer = self.user.call(request, name, self.user.player(client.number), node=node)
        if answer.outcome == "success":
            client.session, client.token, client.node = answer.session_id, answer.token, node
        return answer

    def attach(self, client: Client) -> bool:
        """Opens the client's socket on its node; returns whether it is open."""
        request = wire.attach(self.instance, {"sessionId": client.session})
        opened = self.bridge.call(
            "open",
            base=self.plan.nodes[client.node % len(self.plan.nodes)].url,
            path=request.path,
            query=request.query,
            bearer=self.user.player(client.number).bearer,
            beat=self.number("heartbeat_interval") / _BEATS,
            within=self.plan.patience,
        )
        client.socket = opened["socket"]
        return bool(client.socket)

    def finish(self) -> None:
        self.bridge.close()


class Returning(Sockets):
    """All sockets are cut at once; each arrival is one of their clients that comes back, through another node."""

    def arrange(self) -> None:
        super().arrange()
        joined = self.user.together([partial(self.joined, number) for number in self.mine()])
        self.clients = {client.number: client for client in joined}

    def begin(self) -> None:
        for client in self.clients.values():
            self.bridge.call("drop", number=client.socket)

    def arrive(self, number: int, due: float) -> None:
        client = self.clients[number]
        answer = self.attempt(client, "return", number + 1)
        back = answer.outcome == "success" and self.attach(client)
        self.user.note("return", due, answer, "back" if back else f"{outcome_of(answer)}, no socket")


class Recovering(Sockets):
    """Clients keep their sockets while others come and go. One that loses its socket comes back through other nodes.

    The history has each loss as an operation without an end, and once more, with an end, when the client is back.
    """

    def arrange(self) -> None:
        super().arrange()
        numbers = range(self.user.first, int(self.number("clients")), self.user.of)
        # Their numbers begin behind those of the arrivals.
        mine = [self.characters + number for number in numbers]
        self.introduce(mine)
        self.clients = self.user.together([partial(self.joined, number) for number in mine])
        self.others = Direct(self.user)

    def begin(self) -> None:
        for client in self.clients:
            self.user.beside(self._live, client)

    def arrive(self, number: int, due: float) -> None:
        self.others.arrive(number, due)

    def _live(self, client: Client) -> None:
        while True:
            lost = self._lost(client)
            if self.user.over or lost is None:
                return
            self._recorded_return(client, Outcome.UNKNOWN, (lost, lost))
            while not self._back(client):
                gevent.sleep(_AGAIN)
            self._recorded_return(client, Outcome.OK, (lost, time.monotonic()))

    def _lost(self, client: Client) -> float | None:
        """Waits until the client's socket has ended; returns when, and None at the end of the campaign."""
        try:
            return float(self.bridge.call("ended", number=client.socket)["at"])
        except BridgeError:
            if self.user.over:
                return None
            raise

    def _back(self, client: Client) -> bool:
        answer = self.attempt(client, "return", client.node + 1)
        back = answer.outcome == "success" and self.attach(client)
        self.user.note("return", answer.sent, answer, "back" if back else outcome_of(answer))
        client.node += not back
        return back

    def _recorded_return(self, client: Client, outcome: Outcome, span: tuple[float, float]) -> None:
        self.user.record(self.character(client.number), "return", self.instance, None, outcome, None, span)
