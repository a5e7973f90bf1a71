"""The generator: a Locust user that starts requests when they are due.

Theory of operation. Locust is closed: a user waits for its answer before it goes on, so a target that stalls is asked
less often, and what it did to those who would have come meanwhile is never measured. Here each worker has one user
whose single task walks through the list of due times and starts one greenlet for each. It waits for no answer. A
request that can't be started because too many are in flight is shed, and counted. Latency runs from the due time.

What a worker sees goes to the master in parts (`messages`, `ledger`).
"""

import gc
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import gevent
from gevent.pool import Group, Pool
from locust import FastHttpUser, constant, task
from locust.contrib.fasthttp import FastHttpSession
from locust.env import Environment

from holdfast.check.finding import NotObservable
from holdfast.check.history import Operation, Outcome
from holdfast.conformance.shared.wire import Answer, Request, parse_body
from holdfast.load.arrivals import share
from holdfast.load.ledger import Ledger
from holdfast.load.messages import STAGE, boot

_PART_EVERY = 1.0
_LOOK_EVERY = 0.05
_CLOCK_TRIES = 5
_ARRANGING_AT_ONCE = 16


class Refused(Exception):  # noqa: N818 - it is an answer, not an error of ours
    """Raised while arranging when the campaign can't begin; the text is one sentence for the report."""


class OpenUser(FastHttpUser):
    """One worker's part of a campaign. A spec's user says what an arrival does (`behaviours`)."""

    abstract = True
    wait_time = constant(0)
    host = "http://127.0.0.1"
    max_retries = 0
    behaviours: ClassVar[Mapping[str, Callable[[Any], "Behaviour"]]]
    answer: ClassVar[type[Answer]] = Answer

    def __init__(self, environment: Environment) -> None:
        STAGE.planned.wait()
        assert STAGE.plan is not None
        self.plan = STAGE.plan
        self.network_timeout = self.connection_timeout = self.plan.patience
        self.concurrency = self.plan.in_flight
        # Why this user can't work, in a sentence; told once it can be.
        self.unable = ""
        try:
            context = self.tls()
        except (NotObservable, ValueError) as problem:
            context, self.unable = None, str(problem)
        self.ssl_context_factory = _always(context) if context else None
        super().__init__(environment)
        _plainly(self.client)
        self.ledger = Ledger(f"{STAGE.worker}")
        self.began = 0.0
        self._shift = self._doubt = 0.0
        self._later: Any = Group()
        # How many arrivals have begun and not ended. Counted here: a pool does the same for four times the price.
        self._flying = 0

    def tls(self) -> ssl.SSLContext | None:
        """Returns with which certificate this user calls; None for a target that wants none. Raises NotObservable."""
        return None

    def speaker(self, context: ssl.SSLContext) -> FastHttpSession:
        """Returns what makes calls with another certificate, over connections of its own."""
        session = FastHttpSession(
            base_url=self.host,
            request_event=self.environment.events.request,
            user=None,
            insecure=True,
            ssl_context_factory=_always(context),
            network_timeout=self.network_timeout,
            connection_timeout=self.connection_timeout,
            concurrency=self.concurrency,
            max_retries=0,
        )
        _plainly(session)
        return session

    @task
    def campaign(self) -> None:
        try:
            behaviour = self._arranged()
        except (Refused, NotObservable) as refusal:
            self.environment.runner.send_message("refused", {"why": str(refusal)})
            gevent.sleep(3600)
        self._synchronise()
        self.environment.runner.send_message("ready", {"worker": STAGE.worker})
        STAGE.going.wait()
        self.began = float(STAGE.went["at"]) - self._shift
        sending = gevent.spawn(self._send_parts)
        behaviour.begin()
        with _little_collecting():
            self._arrivals(behaviour)
        self._later.join(timeout=self.plan.patience + self.plan.numbers.get("stay", 0.0))
        if left := len(self._later):
            self.ledger.notes.append(f"{left} steps that follow arrivals had not ended")
        behaviour.finish()
        sending.kill()
        self._send(last=True)
        gevent.sleep(3600)

    def _arranged(self) -> "Behaviour":
        if why := self.unable or self.plan.unfit:
            raise Refused(why)
        behaviour = self.behaviours[self.plan.user](self)
        behaviour.arrange()
        return behaviour

    def _arrivals(self, behaviour: "Behaviour") -> None:
        for number, offset in share(self.plan.due(), STAGE.worker, STAGE.workers):
            due = self.began + offset
            while (left := due - time.monotonic()) > 0:
                gevent.sleep(min(left, _PART_EVERY))
            if STAGE.enough:
                break
            if self._flying >= self.plan.in_flight:
                self.ledger.shed()
            else:
                self._flying += 1
                gevent.spawn(self._one, behaviour, number, due)
        until = time.monotonic() + self.plan.patience + max(self.plan.patience, self.plan.numbers.get("give_up", 0.0))
        while self._flying and time.monotonic() < until:
            gevent.sleep(_LOOK_EVERY)

    def _one(self, behaviour: "Behaviour", number: int, due: float) -> None:
        self.ledger.started(time.monotonic() - due)
        try:
            behaviour.arrive(number, due)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self._told(f"arrival {number}", error)
        else:
            self.ledger.ended(time.monotonic() - self.began)
        self._flying -= 1

    @property
    def first(self) -> int:
        """Which of the workers this is; it starts every `of`-th arrival, beginning with this one."""
        return STAGE.worker

    @property
    def of(self) -> int:
        return STAGE.workers

    def later(self, seconds: float, work: Callable[..., None], *arguments: Any) -> None:
        """Calls `work` after so many seconds; the campaign ends only after that."""

        def run() -> None:
            gevent.sleep(seconds)
            self._guarded(f"what follows {seconds:g} s later", work, *arguments)

        self._later.start(gevent.Greenlet(run))

    def beside(self, work: Callable[..., None], *arguments: Any) -> None:
        """Does the work beside the arrivals; the campaign ends without waiting for it."""
        gevent.spawn(self._guarded, "what runs beside the arrivals", work, *arguments)

    def _guarded(self, what: str, work: Callable[..., None], *arguments: Any) -> None:
        """Does the work. One step that breaks must not end the campaign, nor hide."""
        try:
            work(*arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            self._told(what, error)

    def _told(self, what: str, error: Exception) -> None:
        self.ledger.notes.append(f"{what}: {type(error).__name__}: {error}")

    def together(self, calls: Sequence[Callable[[], Any]]) -> list[Any]:
        """Makes calls that only arrange something, some at a time; returns their results in order."""
        pool: Any = Pool(_ARRANGING_AT_ONCE)
        return list(pool.map(lambda call: call(), calls))

    @property
    def over(self) -> bool:
        """Whether no arrival is due any more."""
        return STAGE.enough or time.monotonic() > self.began + self.plan.seconds

    def ask(
        self,
        request: Request,
        name: str,
        *,
        node: int = 0,
        headers: Mapping[str, str] | None = None,
        by: FastHttpSession | None = None,
    ) -> Answer:
        """Sends one request and returns its answer; status 0 means that there was none, and the text says why."""
        url = self.plan.nodes[node % len(self.plan.nodes)].url + request.path
        said = {**request.headers, **(headers or {})}
        more: dict[str, Any] = {"params": dict(request.query)} if request.query else {}
        sent = time.monotonic()
        reply: Any = (by or self.client).request(
            request.method, url, name=name, json=request.body, headers=said, **more
        )
        received = time.monotonic()
        if not reply.status_code:
            return self.answer(0, {}, None, str(reply.error), sent, received, time.time())
        body, text = parse_body(reply.content or b"")
        return self.answer(reply.status_code, reply.headers or {}, body, text, sent, received, time.time())

    def note(self, name: str, due: float, answer: Answer, outcome: str) -> None:
        """Counts an answer, with its latency from when it was due."""
        zero = self.began
        self.ledger.sample(name, due - zero, answer.sent - zero, answer.received - zero, outcome)

    def record(
        self, client: str, what: str, key: str, argument: Any, outcome: Outcome, value: Any, span: tuple[float, float]
    ) -> None:
        """Puts an operation into the history, on the master's clock; where that is in doubt the interval is wider."""
        first, last = (at - self.began for at in span)
        ended = float("inf") if outcome is Outcome.UNKNOWN else last + self._doubt
        self.ledger.operation(Operation(client, what, key, argument, outcome, value, first - self._doubt, ended))

    def _send_parts(self) -> None:
        while True:
            gevent.sleep(_PART_EVERY)
            self._send()

    def _send(self, *, last: bool = False) -> None:
        self.environment.runner.send_message("part", self.ledger.part(last=last))

    def _synchronise(self) -> None:
        """Learns by how much the master's clock is ahead of ours, and how sure that is: half of the quickest answer."""
        if STAGE.clock.get("boot") == boot():
            return
        best = float("inf")
        for _ in range(_CLOCK_TRIES):
            asked = time.monotonic()
            STAGE.told_time.clear()
            self.environment.runner.send_message("clock", {"asked": asked})
            STAGE.told_time.wait(self.plan.patience)
            took = time.monotonic() - asked
            if took < best and "master" in STAGE.clock:
                best, self._shift = took, float(STAGE.clock["master"]) - (asked + took / 2)
        self._doubt = best / 2


class Behaviour:
    """What the arrivals of one campaign do."""

    def __init__(self, user: OpenUser) -> None:
        self.user = user
        self.plan = user.plan

    def arrange(self) -> None:
        """Prepares what the campaign needs; not measured. Raises Refused if that can't be done."""

    def begin(self) -> None:
        """Does what comes once, when the campaign begins and before the first arrival."""

    def arrive(self, number: int, due: float) -> None:
        """Does what arrival `number` of the whole campaign does, which was due at `due`."""
        raise NotImplementedError

    def finish(self) -> None:
        """Looks once more, after everything has ended; not measured."""


def _always(context: ssl.SSLContext) -> Any:
    """Returns a factory as the client library wants it: called with names of CA files, which this context has."""
    return lambda **_files: context


def _plainly(session: FastHttpSession) -> None:
    """Lets it follow no redirects and keep no cookies: all clients of a campaign go through it, and share none.

    Locust's own parameter for redirects switches them off for a moment, under the feet of other requests.
    """
    agent: Any = session.client
    session.user = None  # Locust would ask it for the context of each request, and there is none
    agent.redirect_response_codes, agent.cookiejar = frozenset(), None


@contextmanager
def _little_collecting() -> Iterator[None]:
    """Keeps the collector from going through all modules again and again, while all greenlets stand still.

    What was there before is frozen. What requests leave behind has cycles, so it still collects, and that is little.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 10, 10)
    yield
