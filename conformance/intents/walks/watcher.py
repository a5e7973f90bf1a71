"""What a walk knows of its sessions, and how it sees what has become of them: polls, Redis, and counted pipelines."""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any

from holdfast.check.finding import Finding
from holdfast.check.walk.vocabulary import Command, Seen
from holdfast.conformance.intents import wire
from holdfast.conformance.intents.keys import Event
from holdfast.conformance.intents.walks.looks import FOREIGN
from holdfast.conformance.intents.walks.sights import Entry, Lease, Logged, Stored
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.stage import Stage
from holdfast.conformance.intents.walks.state import (
    BRIEF,
    CHANNELS,
    KEPT,
    LONG,
    SLOTS,
    SLOW,
    TARGETS,
    UP,
    USUAL,
    Key,
    secrets_after,
)
from holdfast.conformance.intents.wire import Answer, idem_key


class Watcher:
    """`told` are the sessions of each key, oldest first; `over` those that were seen to have ended."""

    def __init__(self, stage: Stage, spans: Spans) -> None:
        self._stage = stage
        self._intents = stage.intents
        self._spans = spans
        self._names = stage.names()
        self._told: dict[Key, list[str]] = {}
        self._keys: dict[str, Key] = {}
        self._over: dict[str, None] = {}
        self._paces: dict[str, str] = {}
        self._secrets: tuple[str, str] = ("s0", "")
        self._known_secrets = ["s0"]
        # Workers that may run a session, as it was known when it was started.
        self._runners: dict[str, frozenset[str]] = {}
        self._copies: Counter[str] = Counter()
        self._turn = 0
        # Sessions of which the logs were read.
        self._read: set[str] = set()

    # --- what is known

    @property
    def _living(self) -> list[str]:
        return [id_ for id_ in self._keys if id_ not in self._over]

    @property
    def _up(self) -> frozenset[str]:
        return frozenset(name for name, how in self._stage.workers.items() if how == UP)

    def _orphaned(self, id_: str) -> bool:
        """Whether nobody can run the session any more that had begun."""
        runners = self._runners.get(id_, frozenset())
        return bool(runners) and not runners & self._up

    def _note(self, key: Key, answer: Answer) -> bool:
        """Notes the session that a start was answered with; returns whether it is a new one."""
        id_ = answer.session_id
        if answer.status != 202 or not id_ or id_ in self._keys:
            return False
        self._keys[id_] = key
        self._told.setdefault(key, []).append(id_)
        return True

    def _change_secrets(self, how: str) -> None:
        self._secrets = secrets_after(self._secrets, how)
        self._known_secrets += [each for each in self._secrets if each and each not in self._known_secrets]

    # --- waiting

    async def _at_most(self, look: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """Waits for something that the model judges: if it does not come, that is for a look to tell."""
        with contextlib.suppress(Finding):
            await self._intents.T.until(look, give_up=seconds, what=what)

    async def _poll(self, id_: str) -> Answer:
        answer = await self._intents.poll(id_, node=self._api())
        if answer.terminal:
            self._over.setdefault(id_)
        return answer

    def _api(self) -> str:
        """Each API in turn: what a look sees must not depend on whom it asks."""
        self._turn += 1
        return self._stage.node(f"n{self._turn % self._stage.sight.nodes + 1}")

    async def _shown(self, ids: Iterable[str]) -> dict[str, Answer]:
        wanted = list(ids)
        return dict(zip(wanted, await asyncio.gather(*map(self._poll, wanted)), strict=True))

    def _is_met(self, id_: str, answer: Answer) -> bool:
        """Whether a session that a worker deals with is where it stays for a while."""
        pace = self._paces.get(self._keys[id_].target, USUAL)
        if answer.terminal or pace == BRIEF:
            return answer.terminal
        return answer.state in self._spans.running or (pace in (SLOW, LONG) and answer.state in wire.STARTING)

    async def _decided(self, ids: Iterable[str], met: Callable[[str, Answer], bool] | None = None) -> dict[str, Answer]:
        """Waits until all of these sessions are decided, or never will be; returns what each shows then."""
        wanted, seen = list(ids), dict[str, Answer]()

        async def look() -> bool:
            seen.update(await self._shown(id_ for id_ in wanted if id_ not in seen or not seen[id_].terminal))
            return all(fits(id_, seen[id_]) for id_ in wanted) and await self._under_way(seen)

        fits = met or self._is_met
        await self._at_most(look, self._intents.never("start_ready"), "sessions to be decided")
        for id_ in wanted:
            if not self._runners.get(id_) and not seen[id_].new:
                self._runners[id_] = self._up
        await self._given_back()
        return seen

    async def _under_way(self, seen: Mapping[str, Answer]) -> bool:
        """Whether each session that is starting has its slot: until then it may still be rejected for lack of one."""
        starting = {id_ for id_, answer in seen.items() if answer.state in wire.STARTING and self._keys[id_].live}
        if not starting or not self._stage.sight.store:
            return True
        return starting <= {*(await self._intents.store.leases("tuner")).values()}

    async def _given_back(self) -> None:
        """Waits until nothing is held any more by a session that has ended, where that can be seen.

        What is free only when a lease may have run out was not released.
        """
        if self._stage.sight.store:
            T = self._intents.T
            await self._at_most(self._holds_nothing, T.lease_left - T.lease_slack, "leases to be released")

    async def _holds_nothing(self) -> bool:
        held = {*(await self._intents.store.leases()).values()}
        return not any(id_ in held and not self._orphaned(id_) for id_ in self._over)

    # --- looks

    async def _polls(self, _command: Command) -> Seen:
        sent = time.monotonic()
        last = list(self._over)[-KEPT:]
        shown = await self._shown([*self._living, *last])
        said = (f"{self._word(id_)} {answer.state or answer.status} {answer.reason}" for id_, answer in shown.items())
        return Seen(sent, time.monotonic(), shown, ", ".join(map(str.strip, said)) or "no session")

    def _word(self, id_: str) -> str:
        key = self._keys[id_]
        return f"{key.target} {key.profile}"

    async def _runs(self, command: Command) -> Seen:
        sent = time.monotonic()
        named = command.get("target")
        targets = [named] if named else [each for each in TARGETS if any(key.target == each for key in self._told)]
        counts = {target: await self._intents.runs(self._names[target]) for target in targets}
        text = ", ".join(f"{target} {count}" for target, count in counts.items())
        return Seen(sent, time.monotonic(), counts, text or "none")

    async def _logged(self, _command: Command) -> Seen:
        """Reads what the logs tell of sessions whose pipelines were started since the last look."""
        now, told = time.monotonic(), dict[str, Logged]()
        nodes = self._intents.deployment.nodes
        for id_ in [each for each in self._living if self._runners.get(each) and each not in self._read]:
            for worker in self._intents.workers:
                lines = nodes[worker].events(sessionId=id_)
                if any(line.get("event") == "pipeline.start" for line in lines):
                    self._read.add(id_)
                    told[id_] = self._lines_of(lines)
        text = ", ".join(f"{self._word(id_)}: {' '.join((*each.leases, *each.states))}" for id_, each in told.items())
        return Seen(now, now, told, text or "nothing new")

    def _lines_of(self, lines: Sequence[Mapping[str, Any]]) -> Logged:
        started = next(place for place, line in enumerate(lines) if line.get("event") == "pipeline.start")
        taken = [line for line in lines[:started] if line.get("event") in ("lease.acquired", "lease.refreshed")]
        kinds = ["tuner" if self._is_tuner(str(line.get("key"))) else "service" for line in taken]
        states = [str(line.get("to", "")).upper() for line in lines if line.get("event") == "session.state"]
        return Logged(tuple(sorted(kinds)), tuple(states))

    async def _stored(self, _command: Command) -> Seen:
        store, sent = self._intents.store, time.monotonic()
        names = await self._stage.key_names() - self._stage.before
        tuners = sorted({*map(store.tuner, range(SLOTS)), *(each for each in names if self._is_tuner(each))})
        leases = [*(store.service(self._names[each]) for each in CHANNELS), *tuners]
        mappings = self._mappings()
        found = await store.together(
            *(words for key in leases for words in (("GET", key), ("PTTL", key))),
            *(("GET", name) for name in mappings),
        )
        read = [_lease(*found[2 * place : 2 * place + 2]) for place in range(len(leases))]
        mapped = dict(zip(mappings.values(), map(_text, found[2 * len(leases) :]), strict=True))
        stored = Stored(
            dict(zip(CHANNELS, read, strict=False)),
            tuple(read[len(CHANNELS) :]),
            {pair: id_ for pair, id_ in mapped.items() if id_},
            await self._records(names),
            tuple(sorted(self._strays(names, {*leases, *mappings}))),
            await self._events(),
        )
        return Seen(sent, time.monotonic(), stored, self._told_of(stored))

    def _is_tuner(self, name: str) -> bool:
        return name.startswith(self._intents.store.roots("tuner"))

    def _mappings(self) -> Mapping[str, tuple[str, Key]]:
        """Returns the names of the mappings that starts may have made, by secret and key."""
        found = {}
        for secret in self._known_secrets:
            if value := self._stage.secret(secret):
                for key in self._told:
                    name = idem_key(value, self._names[key.target], self._names[key.profile], key.bucket)
                    found[self._intents.store.mapping(name)] = secret, key
        return found

    async def _records(self, names: set[str]) -> dict[str, str]:
        store = self._intents.store
        there = [id_ for id_ in self._keys if store.name("session", id_) in names]
        unmet = {id_ for id_ in there if not self._runners.get(id_) and id_ not in self._over}
        return {id_: str((await store.session(id_)).get("state", "")) if id_ in unmet else "" for id_ in there}

    def _strays(self, names: set[str], known: set[str]) -> set[str]:
        store = self._intents.store
        records = {store.name("session", id_) for id_ in self._keys}
        strays = names - known - records
        if not self._stage.secret("s0"):  # then nobody can tell whose a mapping is
            strays = {each for each in strays if not each.startswith(store.roots("idem"))}
        return strays

    async def _events(self) -> tuple[Entry, ...]:
        """Returns what has come on the bus since the last look, but for the copies that the walk has made."""
        found = []
        for event in await self._intents.store.events(after=self._stage.last):
            self._stage.last = event.id
            if event.kind not in (wire.START_EVENT, wire.STOP_EVENT):
                continue  # what else is said on the bus is nobody's affair
            if event.kind == wire.START_EVENT and self._copies[event.session_id]:
                self._copies[event.session_id] -= 1
                continue
            found.append(Entry(event.kind, event.session_id, self._is_sound(event)))
        return tuple(found)

    def _is_sound(self, event: Event) -> bool:
        """Whether a start event names channel and profile, or recording, profile and offset, of its session."""
        key = self._keys.get(event.session_id)
        if event.kind != wire.START_EVENT or key is None:
            return True
        data = event.data
        if data.get("profileId") != self._names[key.profile]:
            return False
        if key.live:
            return str(data.get("serviceRef", "")).strip() == self._names[key.target]
        offset = data.get("startMs", 0)
        there = isinstance(offset, int) and offset // 1000 == key.bucket
        return data.get("recordingId") == self._names[key.target] and there

    def _told_of(self, stored: Stored) -> str:
        held = [f"{name} {self._owner(lease.owner)}" for name, lease in stored.channels.items() if lease.owner]
        tuners = [self._owner(lease.owner) for lease in stored.tuners if lease.owner]
        words = [f"channels: {', '.join(held) or 'none'}", f"tuners: {', '.join(tuners) or 'none'}"]
        words += [f"unknown: {', '.join(stored.strays)}"] if stored.strays else []
        events = ", ".join(f"{each.kind} {self._owner(each.id)}" for each in stored.events)
        words += [f"bus: {events}"] if events else []
        return "; ".join(words)

    def _owner(self, id_: str) -> str:
        if id_ not in self._keys:
            return id_ if id_ == FOREIGN else f"unknown {id_}"
        return f"{self._word(id_)} ({id_[:8]})"


def _lease(owner: object, left: int) -> Lease:
    return Lease(_text(owner), left / 1000 if left >= 0 else None)


def _text(value: object) -> str:
    return str(value) if value is not None else ""
