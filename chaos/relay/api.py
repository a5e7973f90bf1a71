"""The HTTP API: Toxiproxy's routes to the letter, and four more under names that it does not have.

The four: `GET /counters`, `GET /proxies/{proxy}/counters`, `POST /proxies/{proxy}/reset` (reset every open connection)
and `POST /proxies/{proxy}/rebind` (UDP: new source ports towards the upstream).
"""

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from holdfast.chaos.relay.gojson import BodyError, read_object, read_objects, write
from holdfast.chaos.relay.http import JSON_TYPE, TEXT_TYPE, Reply, Request
from holdfast.chaos.relay.metrics import METRICS_TYPE, proxy_metrics, runtime_metrics
from holdfast.chaos.relay.proxy import Proxy, Wanted
from holdfast.chaos.relay.relay import PopulateError, Relay
from holdfast.chaos.relay.toxic import ApiError, bad_body

VERSION = "2.12.0"
VERSION_TYPE = "application/json;charset=utf-8"
NOSNIFF = {"X-Content-Type-Options": "nosniff"}

Action = Callable[..., Awaitable[Reply]]


class Api:
    def __init__(self, relay: Relay, *, metrics: bool = False, runtime: bool = False) -> None:
        self._relay = relay
        self._metrics, self._runtime = metrics, runtime
        self._changing = asyncio.Lock()  # as in Toxiproxy, one change at a time
        self._routes = [(re.compile(path + "$"), actions) for path, actions in self._table().items()]

    async def answer(self, request: Request) -> Reply:
        if (straight := _straight(request.path)) != request.path:
            where = quote(straight) + (f"?{request.query}" if request.query else "")
            return Reply(301, headers={"Location": where})
        for pattern, actions in self._routes:
            if match := pattern.match(request.path):
                action = actions.get(request.method) or actions.get("*")
                if action is None:
                    return Reply(405)
                return await self._answer(action, request, match.groups())
        return Reply(404, b"404 page not found\n", TEXT_TYPE, NOSNIFF)

    async def _answer(self, action: Action, request: Request, names: tuple[str, ...]) -> Reply:
        if request.headers.get("user-agent", "").startswith("Mozilla/"):
            return _routed(Reply(403, b"User agent not allowed\n", TEXT_TYPE, NOSNIFF))
        try:
            if request.method == "GET":
                return _routed(await action(*names))
            async with self._changing:
                return _routed(await action(*names, request.body))
        except BodyError as error:
            return _routed(_refusal(bad_body(error)))
        except PopulateError as error:
            return _routed(_populate_refusal(error))
        except ApiError as error:
            return _routed(_refusal(error))

    def _table(self) -> Mapping[str, Mapping[str, Action]]:
        proxy, toxics = r"/proxies/([^/]+)", r"/proxies/([^/]+)/toxics"
        table: dict[str, Mapping[str, Action]] = {
            "/version": {"GET": self._version},
            "/proxies": {"GET": self._all, "POST": self._create},
            "/populate": {"POST": self._populate},
            "/reset": {"POST": self._reset},
            proxy: {"GET": self._show, "POST": self._change, "PATCH": self._change, "DELETE": self._delete},
            toxics: {"GET": self._toxics, "POST": self._add},
            toxics + "/([^/]+)": {
                "GET": self._toxic,
                "POST": self._update,
                "PATCH": self._update,
                "DELETE": self._remove,
            },
            "/counters": {"GET": self._all_counters},
            proxy + "/counters": {"GET": self._counters},
            proxy + "/reset": {"POST": self._reset_live},
            proxy + "/rebind": {"POST": self._rebind},
        }
        if self._metrics or self._runtime:
            table["/metrics"] = {"*": self._show_metrics}
        return table

    async def _version(self) -> Reply:
        return Reply(200, f'{{"version": "{VERSION}"}}\n'.encode(), VERSION_TYPE)

    async def _all(self) -> Reply:
        shown = [f"{write(name)}:{proxy.json()}" for name, proxy in sorted(self._relay.proxies.items())]
        return _json(200, f"{{{','.join(shown)}}}")

    async def _create(self, body: bytes) -> Reply:
        return _json(201, (await self._relay.create(Wanted.read(read_object(body)))).json())

    async def _populate(self, body: bytes) -> Reply:
        try:
            entries = read_objects(body)
        except BodyError as error:
            raise PopulateError(bad_body(error), None) from error
        made = await self._relay.populate(entries)
        return _json(201, f'{{"proxies":{_listed(made)}}}')

    async def _reset(self, _: bytes) -> Reply:
        await self._relay.reset()
        return Reply(204)

    async def _show(self, proxy: str) -> Reply:
        return _json(200, self._relay.find(proxy).json())

    async def _change(self, proxy: str, body: bytes) -> Reply:
        found = self._relay.find(proxy)
        await found.change(read_object(body))
        return _json(200, found.json())

    async def _delete(self, proxy: str, _: bytes) -> Reply:
        await self._relay.delete(proxy)
        return Reply(204)

    async def _toxics(self, proxy: str) -> Reply:
        return _json(200, self._relay.find(proxy).toxics_json())

    async def _add(self, proxy: str, body: bytes) -> Reply:
        found = self._relay.find(proxy)
        return _json(200, found.add(read_object(body)).json())

    async def _toxic(self, proxy: str, toxic: str) -> Reply:
        return _json(200, self._relay.find(proxy).toxic(toxic).json())

    async def _update(self, proxy: str, toxic: str, body: bytes) -> Reply:
        found = self._relay.find(proxy)
        found.toxic(toxic)  # an unknown name is reported before a bad body
        return _json(200, found.update(toxic, read_object(body)).json())

    async def _remove(self, proxy: str, toxic: str, _: bytes) -> Reply:
        found = self._relay.find(proxy)
        found.remove(found.toxic(toxic))
        return Reply(204)

    async def _all_counters(self) -> Reply:
        return _json(200, write({name: proxy.transport.tally() for name, proxy in sorted(self._relay.proxies.items())}))

    async def _counters(self, proxy: str) -> Reply:
        return _json(200, write(self._relay.find(proxy).transport.tally()))

    async def _reset_live(self, proxy: str, _: bytes) -> Reply:
        return _json(200, write({"connections": await self._relay.find(proxy).transport.reset()}))

    async def _rebind(self, proxy: str, _: bytes) -> Reply:
        return _json(200, write({"flows": self._relay.find(proxy).rebind()}))

    async def _show_metrics(self, *_: bytes) -> Reply:
        text = proxy_metrics(self._relay.proxies.values()) if self._metrics else ""
        return Reply(200, (text + (runtime_metrics() if self._runtime else "")).encode(), METRICS_TYPE)


def _straight(path: str) -> str:
    """Return the path without empty and dotted steps, to which Toxiproxy redirects; a slash at the end stays."""
    steps: list[str] = []
    for step in path.split("/"):
        if step == "..":
            del steps[-1:]
        elif step not in ("", "."):
            steps.append(step)
    end = "/" if steps and path.endswith("/") else ""
    return f"/{'/'.join(steps)}{end}"


def _routed(reply: Reply) -> Reply:
    return Reply(
        reply.status, reply.body, reply.type, {**reply.headers, "X-Toxiproxy-Request-Id": secrets.token_hex(10)}
    )


def _json(status: int, text: str) -> Reply:
    return Reply(status, text.encode("utf-8", "replace"), JSON_TYPE)


def _refusal(error: ApiError) -> Reply:
    text = f'{{"error":{write(error.text)},"status":{error.status}}}\n'
    return Reply(error.status, text.encode("utf-8", "replace"), TEXT_TYPE, NOSNIFF)


def _populate_refusal(error: PopulateError) -> Reply:
    made = _listed(error.made or [])
    return _json(error.status, f'{{"error":{write(error.text)},"status":{error.status},"proxies":{made}}}')


def _listed(proxies: list[Proxy]) -> str:
    return f"[{','.join(proxy.json() for proxy in proxies)}]" if proxies else "null"
