"""The target as a walk meets it. Commands name things as the model does; here they become ids, bodies and tokens."""

import base64
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.check.walk.vocabulary import NO_NODE, Command, Seen
from holdfast.conformance.intents import refusals, wire
from holdfast.conformance.intents.bus import broken
from holdfast.conformance.intents.walks.clients import CLIENTS
from holdfast.conformance.intents.walks.commands import CURRENT, PREVIOUS, START, UNKNOWN, key_of
from holdfast.conformance.intents.walks.looks import FOREIGN
from holdfast.conformance.intents.walks.malformed import malformed_text
from holdfast.conformance.intents.walks.sights import Met, Started, Stopped
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.stage import Stage
from holdfast.conformance.intents.walks.state import BRIEF, DOWN, FAILS, FIRST, LONG, SLOTS, SLOW, STILL, UP, Key
from holdfast.conformance.intents.walks.watcher import Watcher
from holdfast.conformance.intents.wire import Answer

# More lives of a lease than a walk lasts: nobody has to renew what somebody else holds.
_FOR_GOOD = 100


@dataclass(frozen=True)
class _Id:
    id: str


class IntentsWorld(Watcher):
    """`done` is called when the walk has left the stage."""

    def __init__(self, stage: Stage, spans: Spans, done: Callable[[], None]) -> None:
        super().__init__(stage, spans)
        self._done = done
        self._nodes: dict[str, str] = {}
        self._stood = 0.0
        self._phase = stage.phase

    async def close(self) -> None:
        try:
            for target, pace in self._paces.items():
                if pace:
                    await self._intents.steer(self._names[target])
            await self._stage.clear(self._living)
        finally:
            self._done()

    def can(self, command: Command) -> bool:
        needed = {CURRENT: 1, PREVIOUS: 2}.get(command.get("which"), 0)
        return not needed or len(self._told.get(key_of(command, self._spans), [])) >= needed

    def relation(self, command: Command) -> str:
        target, node = command.get("target"), command.get("node")
        alike = command.get("with") or command.get("which") == UNKNOWN
        if command.name not in (START, "stop") or alike or self._stage.sight.nodes < 2:
            return NO_NODE
        return "same" if self._nodes.get(target, node) == node else "other"

    async def do(self, command: Command) -> Seen:
        performers: Mapping[str, Callable[[Command], Awaitable[Seen]]] = {
            "start": self._start,
            "stop": self._stop,
            "refused": self._refused,
            "malformed": self._malformed,
            "forwarded": self._forwarded,
            "lost": self._lost,
            "ask": self._ask,
            "pace": self._pace,
            "redeliver": self._redeliver,
            "seize": self._take,
            "lose": self._take,
            "yield": self._yield,
            "kill": self._kill,
            "term": self._term,
            "stand": self._stand,
            "resume": self._resume,
            "begin": self._begin,
            "restart": self._restart,
            "flip": self._flip,
            "rotate": self._rotate,
            "forget": self._rotate,
            "turn back": self._rotate,
            "polls": self._polls,
            "stored": self._stored,
            "runs": self._runs,
            "logged": self._logged,
        }
        if command.name in (START, "stop") and command.get("node"):
            self._nodes[command.get("target")] = command.get("node")
        return await performers[command.name](command)

    # --- what clients do

    def _body(self, key: Key, command: Command) -> dict[str, Any]:
        target, profile, at = self._names[key.target], self._names[key.profile], command.get("at")
        if key.live:
            return self._intents.start_body(target, profile)
        return self._intents.vod_body(target, None if at == "none" else self._spans.offsets[at], profile)

    def _said(self, key: Key, command: Command) -> tuple[dict[str, Any], str | None, dict[str, str]]:
        """Returns body, authorization and headers of a start, with what else is said in it."""
        body, way = self._body(key, command), command.get("with")
        if way == "another user":
            return body, self._intents.bearer("write2"), {}
        if way == "a key in a header":
            return body, None, {"Idempotency-Key": "b", "User-Agent": "another client", "X-Request-ID": "walk-1"}
        if way == "a LAN client":
            return body, None, {wire.FORWARDED: "192.168.1.20"}
        return self._with(body, way), None, {}

    def _with(self, body: dict[str, Any], way: str) -> dict[str, Any]:
        mode = "recording" if "recordingId" in body else "live"
        more: Mapping[str, Mapping[str, Any]] = {
            "a correlation id": {"correlationId": f"walk.{uuid.uuid4().hex[:8]}"},
            "free parameters": {"params": {**body.get("params", {}), "x": "1"}},
            "a key in the body": {"idempotencyKey": "a"},
            "both profiles": {"profile": body.get("profileID")},
            "its mode": {"params": {**body.get("params", {}), "mode": mode}},
            "an offset": {"startMs": self._spans.offsets["new"]},
            "blanks": {"serviceRef": f"  {body.get('serviceRef')} "},
            "a channel": {"serviceRef": self._names["c1"]},
        }
        said = {**body, **more.get(way, {})}
        return {name: value for name, value in said.items() if way != "no type" or name != "type"}

    async def _start(self, command: Command) -> Seen:
        key = key_of(command, self._spans)
        body, authorization, headers = self._said(key, command)
        answer = await self._intents.post(body, authorization, node=self._node(command), headers=headers)
        shown = None
        if self._note(key, answer):
            id_ = answer.session_id
            shown = (await self._decided([id_]))[id_] if self._up else await self._poll(id_)
        text = answer.describe() + (f", then {shown.describe()}" if shown else "")
        until = time.monotonic() if shown else answer.received
        return Seen(answer.sent, until, Started(answer, shown), text, answer.late)

    def _node(self, command: Command) -> str:
        return self._stage.node(command.get("node") or "n1")

    def _id(self, command: Command) -> str:
        """Returns the session that the command names; one that nobody was told if there is none."""
        told = self._told.get(key_of(command, self._spans), [])
        place = {PREVIOUS: 2, UNKNOWN: len(told) + 1}.get(command.get("which"), 1)
        return told[-place] if place <= len(told) else str(uuid.uuid4())

    async def _stop(self, command: Command) -> Seen:
        id_ = self._id(command)
        answer = await self._intents.stop(id_, node=self._node(command))
        if command.get("which") == UNKNOWN:
            return _seen(answer, Stopped(answer, id_))
        waits = self._up and not self._orphaned(id_) and id_ not in self._over
        ran = False

        def ended(_id: str, seen: Answer) -> bool:
            nonlocal ran
            ran = ran or seen.state in self._spans.running
            return seen.terminal

        shown = (await self._decided([id_], ended))[id_] if waits else None
        text = answer.describe() + (f", then {shown.describe()}" if shown else "")
        return _seen(answer, Stopped(answer, id_, shown, ran, time.monotonic()), text=text)

    async def _refused(self, command: Command) -> Seen:
        key, by = key_of(command, self._spans), command.get("by")
        body = self._body(key, command) if command.get("what") == START else self._intents.stop_body(self._id(command))
        if by == "a token in the URL":
            request = refusals.in_query(self._intents, wire.intent(body))["token"]
            answer = await self._intents.call(request, "", node=self._node(command))
        else:
            answer = await self._intents.post(body, self._credentials(by), node=self._node(command))
        return _seen(answer, answer)

    def _credentials(self, by: str) -> str | None:
        token = self._intents.credential("write")
        return {
            "": None,
            "nobody": "",
            "a stranger": refusals.UNKNOWN,
            "an empty token": "Bearer",
            "half a token": f"Bearer {token[: len(token) // 2]}",
            "another scheme": f"Basic {base64.b64encode(token.encode()).decode()}",
            "no scheme": token,
            "a reader": self._intents.reader,
            "a near miss": self._intents.bearer("near_miss") if by == "a near miss" else "",
        }[by]

    async def _malformed(self, command: Command) -> Seen:
        sound = self._body(key_of(command, self._spans), command)
        text = malformed_text(command.get("call"), sound, self._intents.invalid_profile)
        authorization = self._credentials(command.get("by"))
        answer = await self._intents.post_text(text, authorization, node=self._node(command))
        return _seen(answer, answer)

    async def _forwarded(self, command: Command) -> Seen:
        client = CLIENTS[command.get("client")]
        body = {} if client.inside else self._body(key_of(command, self._spans), command)
        answer = await self._intents.post(body, node=self._node(command), headers=client.headers)
        return _seen(answer, answer)

    async def _lost(self, command: Command) -> Seen:
        key = key_of(command, self._spans)
        async with broken(self._intents):
            answer = await self._intents.post(self._body(key, command), node=self._node(command))
        self._note(key, answer)
        return _seen(answer, answer, late=False)

    async def _ask(self, command: Command) -> Seen:
        answer = await self._intents.poll(str(uuid.uuid4()), node=self._node(command))
        return _seen(answer, answer)

    # --- pipelines, events and leases

    async def _pace(self, command: Command) -> Seen:
        target, how, sent = command.get("target"), command.get("how"), time.monotonic()
        self._paces[target] = how
        delay = {SLOW: "slow_start", LONG: "long_start"}.get(how, "")
        ends = "pipeline_exit_after" if how == BRIEF else ""
        await self._intents.steer(self._names[target], start_delay=delay, fail_start=how == FAILS, exit_after=ends)
        return Seen(sent, time.monotonic(), None, "")

    async def _redeliver(self, command: Command) -> Seen:
        id_, sent = self._id(command), time.monotonic()
        await self._intents.redeliver(_Id(id_))
        self._copies[id_] += 1
        # The model judges what comes of it; here it gets the time to come.
        await self._intents.T.sleep(self._intents.T.sample_every, "a start event that comes again")
        await self._given_back()
        return Seen(sent, time.monotonic(), None, "")

    async def _take(self, command: Command) -> Seen:
        store, sent = self._intents.store, time.monotonic()
        name = await self._lease_of(command)
        owner = (await store.lease(name)).owner
        if command.name == "seize":
            life = round(_FOR_GOOD * self._intents.T.lease_ttl * 1000)
            await store.ask("SET", name, FOREIGN, "PX", life)
        else:
            await store.ask("DEL", name)
        shown = {}
        if owner in self._keys and self._runners.get(owner) and not self._orphaned(owner):
            shown = await self._decided([owner], _has_ended)
        return Seen(sent, time.monotonic(), Met(shown), _told(shown))

    async def _lease_of(self, command: Command) -> str:
        """Returns the lease that the command names: a channel's, that of its session's slot, or that of a free slot."""
        store, lease = self._intents.store, command.get("lease")
        slots = {store.tuner(slot): (await store.lease(store.tuner(slot))).owner for slot in range(SLOTS)}
        if lease == "slot":
            return next((name for name, owner in slots.items() if not owner), store.tuner(0))
        service = store.service(self._names[command.get("target")])
        if lease == "service":
            return service
        holder = (await store.lease(service)).owner
        return next((name for name, owner in slots.items() if owner == holder), store.tuner(0))

    async def _yield(self, _command: Command) -> Seen:
        sent = time.monotonic()
        await self._stage.take_back()
        return Seen(sent, time.monotonic(), None, "")

    # --- workers

    def _set(self, worker: str, how: str) -> None:
        self._stage.workers[worker] = how

    async def _kill(self, command: Command) -> Seen:
        worker = command.get("worker")
        died = await self._intents.kill(self._stage.node(worker))
        self._set(worker, DOWN)
        return Seen(died.lo, died.hi, None, "")

    async def _term(self, command: Command) -> Seen:
        worker, sent = command.get("worker"), time.monotonic()
        node = self._stage.node(worker)
        status, _ = await self._intents.term(node, self._intents.never("drain_max"))
        if status is None:
            await self._intents.kill(node)
        self._set(worker, DOWN)
        shown = await self._shown(self._living)
        await self._given_back()
        return Seen(sent, time.monotonic(), Met(shown, exited=status is not None), _told(shown))

    async def _stand(self, command: Command) -> Seen:
        worker, sent = command.get("worker"), time.monotonic()
        await self._intents.pause(self._stage.node(worker))
        self._set(worker, STILL)
        self._stood = sent
        return Seen(sent, time.monotonic(), None, "")

    async def _resume(self, command: Command) -> Seen:
        worker, sent, T = command.get("worker"), time.monotonic(), self._intents.T
        await self._intents.resume(self._stage.node(worker))
        self._set(worker, UP)
        if sent - self._stood > T.lease_left - T.lease_slack:
            await T.sleep(T.renewal_due, "the next renewal, which finds what has lapsed")
        shown = await self._decided(self._living, self._goes_on)
        return Seen(sent, time.monotonic(), Met(shown), _told(shown))

    def _goes_on(self, id_: str, answer: Answer) -> bool:
        started = bool(self._runners.get(id_)) and answer.state in wire.STARTING
        return started or self._is_met(id_, answer)

    async def _begin(self, command: Command) -> Seen:
        worker, living = command.get("worker"), self._living
        mine = [id_ for id_ in living if self._runners.get(id_) == frozenset({worker}) and worker == FIRST]
        new = [id_ for id_ in living if not self._runners.get(id_)]
        back = await self._intents.restart(self._stage.node(worker))
        self._set(worker, UP)
        shown = await self._decided(mine, _has_ended)
        shown |= await self._decided(new)
        rest = [id_ for id_ in living if id_ not in shown]
        shown |= await self._shown(rest)
        return Seen(back.lo, time.monotonic(), Met(shown), _told(shown))

    # --- APIs

    async def _restart(self, command: Command) -> Seen:
        back = await self._intents.restart(self._node(command))
        return Seen(back.lo, back.hi, None, "")

    async def _flip(self, _command: Command) -> Seen:
        sent = time.monotonic()
        self._phase = 3 - self._phase
        await self._stage.restart_apis(self._secrets, {"api_leases": "true" if self._phase == 1 else "false"})
        return Seen(sent, time.monotonic(), None, f"phase {self._phase}")

    async def _rotate(self, command: Command) -> Seen:
        sent = time.monotonic()
        self._change_secrets(command.name)
        await self._stage.restart_apis(self._secrets)
        return Seen(sent, time.monotonic(), None, "")


def _has_ended(_id: str, answer: Answer) -> bool:
    return answer.terminal


def _told(shown: Mapping[str, Answer]) -> str:
    return ", ".join(f"{id_[:8]} {answer.state or answer.status} {answer.reason}" for id_, answer in shown.items())


def _seen(answer: Answer, what: Any, *, text: str = "", late: bool | None = None) -> Seen:
    """Returns what came of a call: its effect was before the answer, however long its consequences were waited for."""
    said = text or answer.describe()
    return Seen(answer.sent, answer.received, what, said, answer.late if late is None else late)
