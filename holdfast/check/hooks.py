"""Calls the hooks of a descriptor: `[stimulus]`, `[query]` and `[seed]`.

A check asks for `hooks: Hooks` and calls `await hooks.stimulus("enqueue", job_id="j1")`. What the hook does is up to
the descriptor (`holdfast.target.hooks`); the check gives named parameters and gets an `Answer`: the JSON document that
came back, if any, and the moment, from before the call was sent until it was answered. Calls are in the transcript.

What can go wrong, and who is to blame:

- The descriptor has no such hook: `NotObservable`, naming the entry. A check that can't do without one says so in its
  mark (`needs_hooks`), so that the plan knows before anything starts.
- The hook fails (a status that is not 0, an answer that is not 2xx, an error of Redis, an answer of a query that is no
  JSON, a timeout): `HookError`, which makes the verdict `error`. A hook belongs to the operator, so its failure says
  nothing about the target; a driver that knows better may catch it.
- It took too long on a machine that was busy otherwise: `Inconclusive`.

A query must change nothing. Of commands of Redis and of scripts that is enforced: a command that writes is refused
before it is sent, and a script runs under EVAL_RO. Of the other kinds nobody can know.
"""

import asyncio
import json
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from holdfast.check.context import Context
from holdfast.check.finding import HarnessError, Inconclusive, NotObservable
from holdfast.check.hook_calls import CallFailedError, Reply, call_http, call_redis
from holdfast.check.hook_texts import Filling, UnknownPlaceholderError
from holdfast.check.observe import json_lines
from holdfast.check.timeline import Moment
from holdfast.target.deployment import Deployment
from holdfast.target.hooks import Hook, entry_of

_LAST_LINES = 10
# How a command ends that could not be run, or was not found.
_NOT_RUN = (126, 127)


@dataclass(frozen=True)
class Answer:
    """What a hook answered: a JSON document, or None where it said nothing; and when it was called."""

    document: Any
    moment: Moment
    text: str = ""


class HookError(HarnessError):
    """Raised where a hook failed; says which, what it did, how it ended, and its last lines.

    `refused` means that the hook was reached and said no, which it may be right to do.
    """

    def __init__(self, entry: str, did: str, problem: str, lines: list[str], *, refused: bool = False) -> None:
        self.entry = entry
        self.problem = problem
        self.lines = lines
        self.refused = refused
        said = "".join(f"\n  {line}" for line in lines[-_LAST_LINES:])
        super().__init__(f"{entry}: `{did}` {problem}{'; its last lines:' if said else ''}{said}")


class Hooks:
    """The hooks of a target, called on one deployment."""

    def __init__(self, context: Context, deployment: Deployment) -> None:
        self._context = context
        self._deployment = deployment

    @classmethod
    async def provide(cls, context: Context) -> Self:
        return cls(context, context.deployment)

    def on(self, deployment: Deployment) -> "Hooks":
        """Returns the same hooks for another deployment of the check."""
        return Hooks(self._context, deployment)

    def has(self, name: str) -> bool:
        """Whether the descriptor has this hook, by its name `section.name`."""
        return name in self._context.target.hooks

    def need(self, *names: str) -> None:
        """Raises NotObservable for the first of these hooks that the descriptor does not have."""
        for name in names:
            if not self.has(name):
                raise NotObservable(entry_of(name))

    async def stimulus(self, name: str, /, *, node: str = "", **parameters: Any) -> Answer:
        """Gives the target work; `node` is the one whose placeholders the hook is filled with."""
        return await self.call(f"stimulus.{name}", parameters, node)

    async def query(self, name: str, /, *, node: str = "", **parameters: Any) -> Answer:
        """Asks the store; the answer's `document` is what it said, never missing."""
        return await self.call(f"query.{name}", parameters, node)

    async def seed(self, name: str, /, *, node: str = "", **parameters: Any) -> Answer:
        """Writes into the store; works while no node runs."""
        return await self.call(f"seed.{name}", parameters, node)

    async def dump(self, node: str) -> list[dict[str, Any]]:
        """Returns what a node has stored, as the command `[observe] store` prints it: one JSON object a line."""
        answer = await self.call("observe.store", {}, node, lines=True)
        return list(json_lines(answer.text.splitlines()))

    async def call(self, name: str, parameters: Mapping[str, Any], node: str = "", *, lines: bool = False) -> Answer:
        """Calls the hook `section.name`; with `lines` the answer is not one document but one a line, left as text."""
        self.need(name)
        hook = self._context.target.hooks[name]
        if node:
            parameters = {"node": node, **parameters}
        filling = Filling(self._deployment, parameters, node)
        transcript = self._context.transcript
        transcript.sent(lambda: f"{hook.entry} {json.dumps(dict(parameters), ensure_ascii=False, default=str)}")
        began = time.monotonic()
        reply = await self._reply(hook, filling, began)
        moment = Moment(began, time.monotonic())
        transcript.received(lambda: f"{hook.entry} {reply.said()}")
        document = None if lines else self._document(hook, reply)
        return Answer(document, moment, reply.text)

    async def _reply(self, hook: Hook, filling: Filling, began: float) -> Reply:
        try:
            if hook.kind == "exec":
                return await self._run(hook, filling)
            async with asyncio.timeout(hook.timeout):
                if hook.kind == "http":
                    return await call_http(hook, filling)
                return await call_redis(hook, filling, self._store_url(hook))
        except TimeoutError:
            self._excuse(began, hook)
            raise HookError(hook.entry, hook.says(), f"gave no answer within {hook.timeout:g} s", []) from None
        except (CallFailedError, UnknownPlaceholderError) as failed:
            lines, refused = (failed.lines, failed.refused) if isinstance(failed, CallFailedError) else ([], False)
            raise HookError(hook.entry, hook.says(), str(failed), lines, refused=refused) from failed

    async def _run(self, hook: Hook, filling: Filling) -> Reply:
        argv = [filling.text(word) for word in hook.argv]
        ran = await self._deployment.run(
            argv, name=f"{hook.section}-{hook.name}", env=filling.texts(hook.env), deadline=hook.timeout
        )
        if ran.status is None:
            raise TimeoutError
        if ran.status:
            lines = [*ran.stdout.splitlines()[-_LAST_LINES:], *ran.stderr.splitlines()[-_LAST_LINES:]]
            refused = ran.status not in _NOT_RUN
            raise HookError(hook.entry, shlex.join(argv), f"ended with status {ran.status}", lines, refused=refused)
        return Reply(ran.stdout)

    def _store_url(self, hook: Hook) -> str:
        if not self._deployment.store_url:
            raise NotObservable(f"[observe] redis, for {hook.entry}")
        return self._deployment.store_url

    def _excuse(self, began: float, hook: Hook) -> None:
        context = self._context
        held = context.audit.total_lag_between(began, time.monotonic()) + context.queued_since(began)
        if held > hook.timeout / 2:
            raise Inconclusive(
                f"{hook.entry} gave no answer within {hook.timeout:g} s, in {held:.1f} s of which the machine ran "
                "other work"
            )

    def _document(self, hook: Hook, reply: Reply) -> Any:
        """Returns the document. Only a query has to have one; others may say anything, or nothing."""
        if reply.parsed:
            return reply.document
        try:
            return json.loads(reply.text)
        except ValueError:
            if hook.section != "query":
                return reply.text.strip() or None
        lines = reply.text.splitlines() or ["(nothing)"]
        problem = "answered something else than one JSON document"
        raise HookError(hook.entry, hook.says(), problem, lines, refused=True)


def own_section(context: Context, name: str, node: str = "") -> Any:
    """Returns a section of the descriptor that only this spec has, with its placeholders filled in."""
    return Filling(context.deployment, node=node).value(context.target.own.get(name, {}))
