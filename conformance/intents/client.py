"""The driver: the client side of intents. Checks talk to the target only through it.

It brings sessions into the states in which rows begin (`running`, `starting`, `busy`, `without_tuner`, `stopped`), and
waits for what comes of them (`ready`, `decided`, `ended`, `released`, `retry`). Each such step names the row that
judges it: in a check of that row it is judged, in every other check a session that does not get there leaves the row
under test undecided.

Checks that share a deployment are kept apart by fresh channels and recordings, and by tuner slots that each takes for
itself (`places`). What can't be kept apart (all leases, all mappings, the bus as a whole) is for checks with a
deployment of their own.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from holdfast.check.context import Context
from holdfast.check.finding import Finding, demand, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.timeline import Moment
from holdfast.conformance.intents import phases, wire
from holdfast.conformance.intents.caller import NOBODY, HasId, id_of
from holdfast.conformance.intents.holdings import Holdings
from holdfast.conformance.intents.phases import PHASE_1, PHASE_2
from holdfast.conformance.intents.wire import Answer
from holdfast.conformance.shared.wire import status

__all__ = ["NOBODY", "PHASE_1", "PHASE_2", "Intents", "Retried", "Session"]

_PROFILES = ("universal", "high", "low", "mobile")
_INVALID_PROFILE = "no such profile!"
_REF = "1:0:19:{}:3EF:1:C00000:0:0:0:"
_HEX = 8


@dataclass(frozen=True)
class Session:
    """A session that a start was answered with. `target` is its channel, or its recording."""

    id: str
    target: str
    profile: str | None
    answer: Answer

    @property
    def accepted(self) -> Moment:
        """When the start was answered: latencies of the catalogue run from the 202."""
        return Moment(self.answer.received, self.answer.received)

    @property
    def sent(self) -> Moment:
        """When the start was sent."""
        return Moment(self.answer.sent, self.answer.sent)


@dataclass(frozen=True)
class Retried:
    """What `retry` came to: the session that runs, when it was seen to, and every answer on the way."""

    session: Session
    ready: Moment
    answers: Sequence[Answer]

    @property
    def ids(self) -> set[str]:
        return {answer.session_id for answer in self.answers if answer.session_id}


class Intents(Holdings):
    """One target as a check sees it: sessions, what becomes of them, and what they hold."""

    @classmethod
    async def provide(cls, context: Context) -> Self:
        phases.must_fit(context)
        return cls(context, await context.get(SpecTime))

    async def another(self) -> Self:
        """Returns a driver for one more deployment like the check's own."""
        return type(self)(self.context, self.T, await self.context.another())

    # --- names that no other check uses

    def channel(self) -> str:
        """Returns a fresh service reference."""
        return str(self.context.target.dialect.get("service_ref", _REF)).format(uuid.uuid4().hex[:_HEX].upper())

    def recording(self) -> str:
        """Returns a fresh recording."""
        known = self.context.target.dialect.get("recording_ids")
        if not known:
            return f"rec-{uuid.uuid4().hex[:_HEX]}"
        self._recordings = getattr(self, "_recordings", 0) + 1
        return str(known[(self._recordings - 1) % len(known)])

    @property
    def profiles(self) -> list[str]:
        """Profiles that the target accepts: P, P1, P2 … of the catalogue."""
        return [str(name) for name in self.context.target.dialect.get("profiles", _PROFILES)]

    @property
    def invalid_profile(self) -> str:
        return str(self.context.target.dialect.get("invalid_profile", _INVALID_PROFILE))

    @property
    def running_states(self) -> frozenset[str]:
        return frozenset(map(str.upper, self.context.target.dialect.get("running_states", ["READY"])))

    # --- starts and stops

    def start_body(self, ref: str, profile: str | None = None, **fields: Any) -> dict[str, Any]:
        """Returns the body of start(R,P); without a profile the first one."""
        return self.adapter.start(ref, profile or self.profiles[0], **fields)

    def vod_body(self, recording: str, ms: Any = 0, profile: str | None = None, **fields: Any) -> dict[str, Any]:
        """Returns the body of vod(ID,P,ms)."""
        return self.adapter.vod(recording, profile or self.profiles[0], ms, **fields)

    def stop_body(self, session: str | HasId) -> dict[str, Any]:
        return self.adapter.stop(id_of(session))

    async def start(self, ref: str, profile: str | None = None, authorization: str | None = None, **how: Any) -> Answer:
        """Starts a channel and returns the answer, whatever it is; `how` is where and with which headers."""
        await self.places()
        return await self.post(self.start_body(ref, profile), authorization, **how)

    async def vod(
        self, recording: str, ms: Any = 0, profile: str | None = None, authorization: str | None = None, **how: Any
    ) -> Answer:
        """Starts a recording and returns the answer, whatever it is."""
        return await self.post(self.vod_body(recording, ms, profile), authorization, **how)

    async def stop(self, session: str | HasId, authorization: str | None = None, **how: Any) -> Answer:
        """Stops a session and returns the answer, whatever it is."""
        return await self.post(self.stop_body(session), authorization, **how)

    async def begin(self, ref: str | None = None, profile: str | None = None, **how: Any) -> Session:
        """Starts a channel, a fresh one unless it is given, and returns the session that the 202 names."""
        target = ref or self.channel()
        answer = await self.start(target, profile, **how)
        return self._session(target, profile or self.profiles[0], answer)

    async def begin_after(self, ref: str | None = None, profile: str | None = None, **how: Any) -> Session:
        """Starts a channel again and again while the answer is 503, as after an outage; returns the session."""
        target = ref or self.channel()

        async def taken() -> Answer | None:
            answer = await self.start(target, profile, **how)
            expect(answer, wire.accepted(), wire.refused(503), why="a start after an outage")
            return answer if answer.status == 202 else None

        answer, _ = await self.T.until(
            taken, give_up=self.T.give_up, what="a start to be accepted", every=self.T.sample_every
        )
        return self._session(target, profile or self.profiles[0], answer)

    async def begin_vod(self, recording: str | None = None, ms: Any = 0, profile: str | None = None) -> Session:
        """Starts a recording and returns the session that the 202 names."""
        target = recording or self.recording()
        return self._session(target, profile or self.profiles[0], await self.vod(target, ms, profile))

    def _session(self, target: str, profile: str, answer: Answer) -> Session:
        with self.context.arranging("IN-QUEUE-04"):
            expect(answer, wire.accepted(), why="a valid start")
        return Session(answer.session_id, target, profile, answer)

    # --- sessions in a state

    async def running(self, ref: str | None = None, profile: str | None = None, **how: Any) -> Session:
        """Starts a channel and waits until its session runs (A READY)."""
        session = await self.begin(ref, profile, **how)
        await self.ready(session)
        return session

    async def running_vod(self, recording: str | None = None, ms: Any = 0, profile: str | None = None) -> Session:
        session = await self.begin_vod(recording, ms, profile)
        await self.ready(session, owner="IN-TUNER-04")
        return session

    async def starting(
        self, ref: str | None = None, profile: str | None = None, *, delay: str = "slow_start"
    ) -> Session:
        """Starts a channel whose pipeline takes as long as this timing says; returns it once it is STARTING."""
        target = ref or self.channel()
        await self.steer(target, start_delay=delay)
        session = await self.begin(target, profile)
        with self.context.arranging("IN-RUN-01"):
            await self._until(session, lambda seen: seen.state in wire.STARTING, "STARTING")
        return session

    async def busy(self, holder: Session, profile: str | None = None) -> Session:
        """Starts the channel of a running session in another profile; returns the rejected session."""
        other = profile or next(name for name in self.profiles if name != holder.profile)
        session = await self.begin(holder.target, other)
        with self.context.arranging("IN-BUSY-02"):
            expect(await self.decided(session), wire.ended_busy(), why="a start of a channel that is held")
        return session

    async def without_tuner(self, ref: str | None = None, profile: str | None = None) -> Session:
        """Starts a channel while no slot is free; returns the rejected session."""
        session = await self.begin(ref, profile)
        with self.context.arranging("IN-TUNER-02"):
            expect(await self.decided(session), wire.ended_without_tuner(), why="a start without a free tuner")
        return session

    async def stopped(self, *sessions: Session) -> Moment:
        """Stops sessions and waits until all are terminal; returns when the first stop was sent."""
        sent = self.T.now()

        async def end(session: Session) -> None:
            with self.context.arranging("IN-RUN-06"):
                expect(await self.stop(session), wire.accepted(), status(202), why="a stop")
                await self._until(session, lambda seen: seen.terminal, "terminal")

        await self.parallel([partial(end, session) for session in sessions], at_once=16)
        return sent

    # --- waiting

    async def ready(self, session: Session, *, owner: str = "IN-RUN-01", every: float | None = None) -> Moment:
        """Waits until the session runs; returns when. Raises Finding as soon as it is terminal instead."""
        with self.context.arranging(owner):
            _, seen = await self._until(session, lambda seen: seen.state in self.running_states, "READY", every=every)
        return seen

    async def decided(self, session: Session, *, every: float | None = None) -> Answer:
        """Waits until the session runs or is terminal, whichever comes; returns the poll that shows it."""
        return (await self.verdict(session, every=every))[0]

    async def verdict(self, session: Session, *, every: float | None = None) -> tuple[Answer, Moment]:
        """Does the same and returns when, too."""
        both = self.running_states | wire.TERMINAL
        return await self._until(session, lambda seen: seen.state in both, "decided", every=every)

    async def ended(self, session: Session, *, since: Moment | None = None) -> tuple[Answer, Moment]:
        """Waits until the session is terminal; returns the poll that shows it, and when."""
        return await self._until(session, lambda seen: seen.terminal, "terminal", since=since)

    async def _until(
        self,
        session: Session,
        fits: Callable[[Answer], bool],
        what: str,
        *,
        since: Moment | None = None,
        every: float | None = None,
    ) -> tuple[Answer, Moment]:
        """Polls until an answer fits. Raises Finding after give_up, or once the session has ended without it."""

        async def look() -> Answer | None:
            seen = await self.poll(session)
            if seen.terminal and not fits(seen):
                raise Finding([f"the session {what}"], seen.describe(), f"session {session.id}")
            return seen if fits(seen) else None

        start = since or session.accepted
        left = max(0.0, self.T.now().hi - start.hi)
        return await self.T.until(
            look, give_up=self.T.give_up + left, since=start, what=f"the session {what}", every=every or self.look_every
        )

    async def retry(self, ref: str, profile: str | None = None, *, unlike: HasId | None = None, **how: Any) -> Retried:
        """Starts the channel every probe_every until a session of it runs. Raises Finding at give_up.

        Also as soon as an answer names the session `unlike`, which has ended.
        """
        began, answers = self.T.now(), list[Answer]()
        while True:
            probe = self.T.now()
            answers.append(await self.start(ref, profile, **how))
            expect(answers[-1], wire.accepted(), status(409), why=f"attempt {len(answers)} to start the channel")
            if unlike:
                demand(answers[-1].session_id != unlike.id, "another session", answers[-1].describe(), "a new start")
            if answers[-1].status == 202:
                session = Session(answers[-1].session_id, ref, profile or self.profiles[0], answers[-1])
                verdict = await self.decided(session)
                if verdict.state in self.running_states:
                    return Retried(session, self.T.now(), answers)
                demand(verdict.rejected, "READY or rejected", verdict.describe(), f"attempt {len(answers)}")
            if time.monotonic() > began.hi + self.T.give_up + self.T.held_back(began):
                raise Finding(["a session of the channel READY"], answers[-1].describe(), "all attempts", late=True)
            await self.T.sleep_until(probe, self.T.probe_every, "the next attempt to start the channel")

    def in_time(self, retried: Retried, since: Moment, what: str) -> None:
        """Judges that the successful start was sent sooner than an abandoned lease could have run out."""
        self.T.at_most("lease_left", since=since, seen=retried.session.sent, what=what)

    async def undisturbed(
        self, session: Session, seconds: float, why: str, *, every: float | None = None, state: str = ""
    ) -> None:
        """Polls for so long and judges that the session stays as it is: running, or in this state."""
        legal = wire.shown(*([state] if state else self.running_states))

        async def look() -> None:
            expect(await self.poll(session), legal, why=why)

        await self.throughout(look, seconds, why, every=every or self.T.sample_every)

    # --- slots

    async def slots(self, count: int) -> None:
        """Lets this many tuner slots be free (n slots). The check needs a deployment of its own.

        Workers that we start are given so many; elsewhere sessions on other channels fill the rest.
        """
        target = self.context.target
        if target.startable and not self.owns_deployment:
            raise RuntimeError('slots are counted on a deployment of the check\'s own; add isolation="quiet"')
        if not (target.startable and "tuner_slots" in target.settings):
            await self._fill(count)
            return
        slots = ",".join(map(str, range(count)))
        for name in self.workers:
            node = self.deployment.nodes[name]
            node.configure(settings={"tuner_slots": slots})
            if node.pid:
                await self.restart(name)

    async def _fill(self, leaving: int) -> None:
        """Starts channels until one is rejected for lack of a tuner, and stops as many as are to be left."""
        held = list[Session]()
        while True:
            session = await self.begin()
            verdict = await self.decided(session)
            if verdict.no_tuner:
                break
            with self.context.arranging("IN-RUN-01"):
                expect(verdict, wire.shown(*self.running_states), why="a session that fills a slot")
            held.append(session)
        with self.context.arranging("IN-TUNER-01"):
            demand(len(held) >= leaving, f"{leaving} slots or more", f"{len(held)} slots", "the target's slots")
        await self.stopped(*held[:leaving])
