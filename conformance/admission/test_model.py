"""Random sequences of calls against the model: after each step the target's state follows its rules.

Each judgement names its row, and what is found is about that row alone: a target whose full instance queues nobody has
not let anybody overtake. Where this check does not verify the row, its own rows are undecided.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import hypothesis
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from holdfast.check.bridge import Call, in_thread
from holdfast.check.finding import Finding, Inconclusive, expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.model import Model, Room
from holdfast.conformance.admission.wire import Answer, done, success
from holdfast.conformance.shared.wire import status

EXAMPLES, STEPS = 15, 20
ENOUGH_STEPS = 20
PEOPLE, ROOMS = ("a", "b", "c", "d", "e"), ("i1", "i2")
NTH = st.integers(0, len(PEOPLE) - 1)
# Every play starts with one inside and two waiting, one inside elsewhere and one outside.
OPENING = (("a", "i1"), ("b", "i1"), ("c", "i1"), ("d", "i2"))


@verifies("AD-ADMIT-09", "AD-QUEUE-06", "AD-QUEUE-10", "AD-QUEUE-12", busy=True, waits="15*prompt")
async def test_any_sequence_of_calls_leaves_queue_and_sessions_as_the_rules_say(
    admission: Admission, T: SpecTime
) -> None:
    search = Search(admission, T)
    try:
        await in_thread(search.run, deadline=2 * EXAMPLES * T.prompt)
    except EnoughError:
        pass
    except Exception:
        if search.found is None:
            raise
    if search.found:
        with admission.context.about(search.row):
            raise search.found
    if search.steps < ENOUGH_STEPS:
        raise Inconclusive(f"time for {search.steps} steps only, {ENOUGH_STEPS} are needed")


class EnoughError(Exception):
    """Raised when the time for the search is over; what it has found so far counts."""


class Search:
    """Tries the examples of one check within a time budget; keeps the shortest that broke a rule, and its row."""

    def __init__(self, admission: Admission, T: SpecTime) -> None:
        self.admission = admission
        self.T = T
        self.steps = 0
        self.found: Finding | None = None
        self.row, self._length = "", 0
        self._started = time.monotonic()
        self._found_at = 0.0

    def run(self, call: Call) -> None:
        def machine() -> RuleBasedStateMachine:
            return Machine(self, call)

        settings = hypothesis.settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            database=None,
            deadline=None,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
            verbosity=hypothesis.Verbosity.quiet,
            report_multiple_bugs=False,
        )
        seeded = hypothesis.seed(self.admission.context.seed)(machine)
        run_state_machine_as_test(seeded, settings=settings)  # type: ignore[arg-type]  # any factory will do

    def keep_to_the_budget(self) -> None:
        """Raises EnoughError when the time is up; after a broken rule, some time is left to find a shorter sequence."""
        searching = time.monotonic() < self._started + 1.5 * EXAMPLES * self.T.prompt
        shrinking = time.monotonic() < self._found_at + self.T.prompt_never
        if not (shrinking if self.found else searching):
            raise EnoughError

    def record(self, story: list[str], failure: AssertionError, row: str) -> None:
        self._found_at = self._found_at or time.monotonic()
        if self.found is None or len(story) <= self._length:
            broken = failure if isinstance(failure, Finding) else Finding(["the rules kept"], str(failure))
            why = f"{broken.why}; " if broken.why else ""
            self.found = Finding(broken.expected, broken.seen, f"{why}after: {'; '.join(story)}", late=broken.late)
            self.row, self._length = row, len(story)


class Play:
    """One example: fresh characters and instances, and the model beside them."""

    def __init__(self, search: Search, arenas: dict[str, Instance], people: dict[str, Character]) -> None:
        self.model = Model({where: Room(capacity=1) for where in arenas})
        self._search = search
        self._arenas = arenas
        self._people = people
        self._sessions: dict[str, str] = {}
        self._refusals: Counter[str] = Counter()
        self._story: list[str] = []
        self._started = time.monotonic()
        self._broken = False
        self._row = ""

    @contextmanager
    def _of(self, row: str) -> Iterator[None]:
        """Put around a judgement of this row."""
        self._row = row
        yield

    @classmethod
    async def begin(cls, search: Search) -> "Play":
        arenas = {where: await search.admission.instance(capacity=1) for where in ROOMS}
        people = dict(zip(PEOPLE, await search.admission.characters(len(PEOPLE)), strict=True))
        play = cls(search, arenas, people)
        for who, where in OPENING:
            await play.step(play.connect, who, where)
        return play

    async def step(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        """Does one step, unless the play is over: its sessions have no sockets, so it must end before they go stale."""
        self._search.keep_to_the_budget()
        stale = self._search.T.stale_limit
        if self._broken or self._age() > stale / 2:
            return
        self._search.steps += 1
        try:
            await work(*args)
        except AssertionError as failure:
            self._broken = True
            if self._age() > 0.9 * stale:
                raise Inconclusive(
                    "the machine is too slow: sessions without sockets may have become stale"
                ) from failure
            self._search.record(self._story, failure, self._row)
            raise

    def waiting(self) -> list[str]:
        return [who for who in PEOPLE if self.model.post(who)]

    def inside(self) -> list[str]:
        return [who for who in PEOPLE if self.model.home(who) and not self.model.in_limbo(who)]

    def replaceable(self) -> list[str]:  # on a draining instance nobody may replace a session
        return [who for who in self.inside() if not self.model.rooms[self.model.home(who) or ""].draining]

    def rivals(self, leaver: str) -> list[str]:
        """Returns who may try for the slot that this one leaves: those in line for it and those outside.

        Nobody if the line has a passed-over entry: whether that makes a newcomer wait is open.
        """
        model = self.model
        here = (None, model.home(leaver))
        if model.rooms[model.home(leaver) or ""].passed_over:
            return []
        barred = [who for who in PEOPLE if model.home(who) or model.in_limbo(who) or who in model.suspended]
        return [who for who in PEOPLE if who not in barred and model.post(who) in here]

    async def connect(self, who: str, where: str) -> None:
        limbo, row = set(self.model.limbo()), self.model.row_of(who, where)
        legal = self.model.connect(who, where)
        if not self._may_be_refused(who, legal[0].outcome):
            return
        answer = await self._arenas[where].connect(self._people[who])
        self._tell(f"{who} connects to {where}: {_said(answer)}")
        with self._of(self.model.row_of_success(who, where) if answer.outcome == "success" else row):
            expect(answer, *legal)
        self._note_session(who, answer)
        await self._compare(limbo, [], who)

    async def leave(self, who: str) -> None:
        limbo, where = set(self.model.limbo()), self.model.home(who) or ""
        promoted = self.model.leave(who)
        self._tell(f"{who} leaves {where}")
        await self._leaves(who, where)
        await self._compare(limbo, promoted, who)

    async def race(self, leaver: str, who: str) -> None:
        """Makes both calls at the same instant: whichever comes first, nobody overtakes."""
        limbo, where = set(self.model.limbo()), self.model.home(leaver) or ""
        legal, promoted = self.model.race(leaver, who)
        connecting = self._arenas[where].connect(self._people[who])
        left, answer = await asyncio.gather(self._leave(leaver, where), connecting)
        self._tell(f"{leaver} leaves {where} while {who} connects: {_said(answer)}")
        with self._of("AD-RECON-09"):
            expect(left, done())
        with self._of("AD-QUEUE-06"):
            expect(answer, *legal)
        self._note_session(who, answer)
        answered = [who] if answer.outcome == "success" else []
        await self._compare(limbo, [other for other in promoted if other not in answered], leaver, who)

    async def unqueue(self, who: str) -> None:
        limbo, where = set(self.model.limbo()), self.model.post(who) or ""
        self.model.unqueue(who)
        self._tell(f"{who} leaves the queue of {where}")
        with self._of("AD-QUEUE-08"):
            await self._arenas[where].withdraw(self._people[who])
        await self._compare(limbo, [], who)

    async def replace(self, who: str) -> None:
        """Replaces its session, which must change nothing else. Other checks judge whether an offer is made at all."""
        where = self.model.home(who) or ""
        arena, character = self._arenas[where], self._people[who]
        legal = self.model.connect(who, where)
        if not self._may_be_refused(who, legal[0].outcome):
            return
        refusal = await arena.connect(character)
        self._tell(f"{who} connects to {where} again: {_said(refusal)}")
        with self._of("AD-ADMIT-09"):
            expect(refusal, *legal)
        if not refusal.offer:
            return
        answer = await arena.connect(character, replace=refusal.offer)
        self._tell(f"{who} replaces its session on {where}: {_said(answer)}")
        with self._of("AD-REPL-02"):
            expect(answer, success())
        self._note_session(who, answer)
        await self._compare(set(self.model.limbo()), [], who)

    async def drain(self, where: str, on: bool) -> None:
        self.model.rooms[where].draining = on
        self._tell(f"drain of {where} {'on' if on else 'off'}")
        await self._arenas[where].drain(on=on)
        await self._compare(set(self.model.limbo()), [])

    async def resize(self, where: str, capacity: int) -> None:
        limbo = set(self.model.limbo())
        promoted = self.model.resize(where, capacity)
        self._tell(f"capacity of {where} set to {capacity}")
        await self._arenas[where].put(capacity=capacity)
        await self._compare(limbo, promoted)

    async def suspend(self, who: str) -> None:
        limbo = set(self.model.limbo())
        self.model.suspend(who)
        self._tell(f"{who} is suspended")
        await self._search.admission.suspend(self._people[who])
        await self._compare(limbo, [], who)

    async def end(self) -> None:
        """Takes everybody out; whoever is inside by the model must have a session to leave."""
        for who in PEOPLE:
            if post := self.model.post(who):
                await self._arenas[post].unqueue(self._people[who])
        for who in PEOPLE:
            if home := self.model.home(who):
                self._tell(f"at the end {who} leaves {home}")
                await self._leaves(who, home)

    async def _compare(self, limbo: set[tuple[str, str]], promoted: list[str], *involved: str) -> None:
        """Waits for the promotions, then polls those who wait and those involved, and compares with the model."""
        for who in promoted:
            home = self._arenas[self.model.home(who) or ""]
            with self._of("AD-QUEUE-10"):
                answer, _ = await home.admitted(self._people[who], within=self._search.T.promote_never)
            self._sessions[who] = answer.session_id
        for who, where in limbo - set(self.model.limbo()):
            with self._of("AD-QUEUE-12"):
                await self._gone(who, where)
        rooms = self.model.rooms.items()
        watched = sorted({(who, where) for where, room in rooms for who in (*room.line, *involved)})
        polls = [self._arenas[where].status(self._people[who]) for who, where in watched]
        for (who, where), poll in zip(watched, await asyncio.gather(*polls), strict=True):
            with self._of(self.model.row_of_poll(who, where, poll.state)):
                self._judge(who, where, poll)

    async def _gone(self, who: str, where: str) -> None:
        async def look() -> bool:
            return (await self._arenas[where].status(self._people[who])).status == 404

        await self._search.T.until(look, give_up=self._search.T.promote_never, what="the end of a passed-over entry")

    def _judge(self, who: str, where: str, poll: Answer) -> None:
        room, state = self.model.rooms[where], poll.state
        if who in room.waiting:
            expect(poll.status, 200, why=f"{who} waits on {where}")
            expect(state, "queued", why=f"{who} waits on {where}")
            expect(poll.position, *room.places(who), why=f"place of {who} on {where}")
            expect(poll.depth, *room.depths(), why=f"depth of {where}")
        elif who in room.passed_over:
            expect(state if poll.status == 200 else poll.status, "queued", 404, why=f"{who} is passed over on {where}")
            if poll.status == 404:
                room.remove(who)
        elif who in room.inside:
            there = poll.session_id if poll.status == 200 else poll.status
            expect(there, 404, self._sessions[who], why=f"{who} is in session on {where}")
        else:
            expect(poll, status(404), why=f"{who} neither waits on {where} nor is in session there")

    def _may_be_refused(self, who: str, outcome: str) -> bool:
        """Returns whether a further refusal is safe: a target may count each as a failure and lock the user."""
        self._refusals[who] += outcome == "failed"
        return outcome != "failed" or self._refusals[who] < self._search.T.count("rate_failures")

    def _note_session(self, who: str, answer: Answer) -> None:
        if answer.outcome == "success":
            self._sessions[who] = answer.session_id

    async def _leaves(self, who: str, where: str) -> None:
        with self._of("AD-RECON-09"):
            expect(await self._leave(who, where), done())

    async def _leave(self, who: str, where: str) -> Answer:
        return await self._arenas[where].leave(self._sessions[who], self._people[who])

    def _tell(self, line: str) -> None:
        self._story.append(line)
        self._search.admission.context.transcript.note(line)

    def _age(self) -> float:
        return time.monotonic() - self._started


class Machine(RuleBasedStateMachine):
    """Draws the steps; `nth` picks among those for whom the step makes sense.

    What is drawn never depends on what happened, because a play that a slow machine cuts short must not look flaky.
    """

    def __init__(self, search: Search, call: Call) -> None:
        super().__init__()
        self._call = call
        self._play = call(Play.begin(search))

    def _do(self, work: Callable[..., Awaitable[None]], *args: Any) -> None:
        self._call(self._play.step(work, *args))

    @rule(who=st.sampled_from(PEOPLE), where=st.sampled_from(ROOMS))
    def connect(self, who: str, where: str) -> None:
        if not self._play.model.undecided(who, where):
            self._do(self._play.connect, who, where)

    @rule(nth=NTH)
    def retry(self, nth: int) -> None:
        for who in _pick(self._play.waiting(), nth):
            self._do(self._play.connect, who, self._play.model.post(who) or "")

    @rule(nth=NTH)
    def leave(self, nth: int) -> None:
        for who in _pick(self._play.inside(), nth):
            self._do(self._play.leave, who)

    @rule(nth=NTH, other=NTH)
    def leave_while_another_connects(self, nth: int, other: int) -> None:
        for leaver in _pick(self._play.inside(), nth):
            for who in _pick(self._play.rivals(leaver), other):
                self._do(self._play.race, leaver, who)

    @rule(nth=NTH)
    def leave_the_queue(self, nth: int) -> None:
        for who in _pick(self._play.waiting(), nth):
            self._do(self._play.unqueue, who)

    @rule(nth=NTH)
    def replace(self, nth: int) -> None:
        for who in _pick(self._play.replaceable(), nth):
            self._do(self._play.replace, who)

    @rule(where=st.sampled_from(ROOMS), on=st.booleans())
    def drain(self, where: str, on: bool) -> None:
        self._do(self._play.drain, where, on)

    @rule(where=st.sampled_from(ROOMS), capacity=st.integers(1, 3))
    def resize(self, where: str, capacity: int) -> None:
        self._do(self._play.resize, where, capacity)

    @rule(nth=NTH)
    def suspend_one_who_waits(self, nth: int) -> None:
        for who in _pick(self._play.waiting(), nth):
            if not self._play.model.suspended:
                self._do(self._play.suspend, who)

    def teardown(self) -> None:
        self._do(self._play.end)


def _said(answer: Answer) -> str:
    words = (answer.outcome, answer.reason, f"position {answer.position}" if answer.outcome == "queued" else None)
    return " ".join(word for word in words if word) or answer.describe()


def _pick(people: list[str], nth: int) -> list[str]:
    """Returns the nth of them, modulo their number, in a list; an empty list if there is nobody."""
    return [people[nth % len(people)]] if people else []
