"""The two kinds of hooks that need no process: one HTTP call, and commands or a script for Redis."""

import json
import ssl
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import aiohttp
from redis.exceptions import RedisError, ResponseError

from holdfast.check.hook_texts import Filling
from holdfast.check.plain import in_words
from holdfast.check.redis_wire import RedisWire, connected
from holdfast.target.hooks import Hook, Script

_SHOWN = 400
# What may change something although it is not marked as writing.
_NO_QUESTIONS = frozenset({"publish", "spublish"})
_NO_CATEGORIES = frozenset({"@scripting", "@admin", "@transaction"})


class CallFailedError(RuntimeError):
    """A call that was not answered as it should be; `lines` is what came back instead.

    `refused` means that there was an answer, and that it was a no.
    """

    def __init__(self, problem: str, lines: list[str] | None = None, *, refused: bool = False) -> None:
        self.lines = lines or []
        self.refused = refused
        super().__init__(problem)


@dataclass(frozen=True)
class Reply:
    """What came back: a text, or, where `parsed`, a document."""

    text: str = ""
    document: Any = None
    parsed: bool = field(default=False)

    def said(self) -> str:
        shown = json.dumps(self.document, ensure_ascii=False) if self.parsed else self.text.strip()
        return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


async def call_http(hook: Hook, filling: Filling) -> Reply:
    """Sends the request; returns the body of a 2xx answer. Raises CallFailedError for any other answer, or none."""
    url = filling.text(hook.url, lambda value: quote(value, safe=""))
    headers, data = filling.texts(hook.headers), _body(hook, filling)
    if data is not None and "content-type" not in {name.lower() for name in headers}:
        headers["content-type"] = "application/json" if _is_json(data) else "text/plain; charset=utf-8"
    tls = _client_tls(Path(filling.text(hook.cert))) if hook.cert else True
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session,
            session.request(hook.method, url, headers=headers, data=data, ssl=tls) as answer,
        ):
            text = await answer.text(errors="replace")
    except (aiohttp.ClientError, OSError) as error:
        raise CallFailedError(f"could not be sent to {url}: {in_words(error)}") from error
    if not answer.ok:
        raise CallFailedError(f"was answered {answer.status} {answer.reason} by {url}", text.splitlines(), refused=True)
    return Reply(text)


async def call_redis(hook: Hook, filling: Filling, url: str) -> Reply:
    """Does the commands, or the script; returns the answer of one command, a list of those of several."""
    try:
        async with connected(url, deadline=hook.timeout, maps=True) as wire:
            if hook.script:
                found = await _run_script(hook.script, hook, filling, wire)
            else:
                found = await _run_commands(hook, filling, wire)
    except ResponseError as refused:
        raise CallFailedError(f"was refused by Redis: {refused}", refused=True) from refused
    except (RedisError, OSError) as error:
        raise CallFailedError(f"did not reach Redis at {url}: {in_words(error)}") from error
    # A text is a document written down, as a script answers it; everything else is one already.
    return Reply(found) if isinstance(found, str) and (_is_json(found) or hook.section != "query") else _parsed(found)


def _parsed(found: Any) -> Reply:
    return Reply(document=_plain(found), parsed=True)


async def _run_commands(hook: Hook, filling: Filling, wire: RedisWire) -> Any:
    commands = [[filling.text(word) for word in command] for command in hook.commands]
    if hook.section == "query":
        for command in commands:
            await _must_only_read(command, wire)
    if len(commands) == 1:
        return await wire.ask(*commands[0])
    return await wire.transaction(commands)


async def _run_script(script: Script, hook: Hook, filling: Filling, wire: RedisWire) -> Any:
    keys = [filling.text(key) for key in script.keys]
    words: list[str | int] = [script.text, len(keys), *keys, *(filling.text(each) for each in script.args)]
    if hook.section != "query":
        return await wire.ask("EVAL", *words)
    try:
        return await wire.ask("EVAL_RO", *words)
    except ResponseError as refused:
        if "unknown command" not in str(refused).lower():
            raise
    return await wire.ask("EVAL", *words)  # before Redis 7 nothing can hold a script to reading


async def _must_only_read(command: list[str], wire: RedisWire) -> None:
    name = command[0].lower()
    sub = f"{name}|{command[1].lower()}" if len(command) > 1 else name
    known = await wire.ask("COMMAND", "INFO", sub, name)
    entry = next((each for each in known if each), None)
    if entry is None:
        raise CallFailedError(f"asks for {command[0]}, which this Redis does not know")
    flags, categories = set(map(str, entry[2])), set(map(str, entry[6]))
    if "write" in flags or categories & _NO_CATEGORIES or name in _NO_QUESTIONS:
        raise CallFailedError(f"was not sent: a query must not change anything, and {command[0]} may")


def _body(hook: Hook, filling: Filling) -> str | None:
    if hook.body is None or isinstance(hook.body, str):
        return None if hook.body is None else filling.text(hook.body)
    return json.dumps(filling.value(hook.body), ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _plain(value: Any) -> Any:
    """An answer of Redis as JSON has it."""
    match value:
        case dict():
            return {str(name): _plain(each) for name, each in value.items()}
        case set() | frozenset():
            return sorted(_plain(each) for each in value)
        case list() | tuple():
            return [_plain(each) for each in value]
        case bytes():
            return value.decode(errors="replace")
        case _:
            return value


@lru_cache(maxsize=64)
def _client_tls(bundle: Path) -> ssl.SSLContext:
    """Returns a context that shows this certificate and verifies no server, as `ready_as` does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(bundle)
    return context
