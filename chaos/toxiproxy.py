"""A Toxiproxy server, a real one or our relay, through toxiproxy-python.

That package talks to one server per process, waits for ever, has no updates and takes most errors for success. Here
each server has its own address and deadline, and every failure is an error of one sentence. The package is synchronous,
so each call runs in a thread, with the server that it is meant for in a context variable.
"""

import asyncio
import contextvars
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

import requests
import toxiproxy.api
import toxiproxy.proxy
import toxiproxy.server

from holdfast.check.finding import HarnessError

R = TypeVar("R")
Fields = dict[str, Any]

DEADLINE = 5.0
# Seconds that we wait past the deadline for a call's thread, which ends by its own time-outs.
GRACE = 1.0
ANY_PORT = "127.0.0.1:0"


class ToxiproxyError(HarnessError):
    """The server refused, gave an answer that can't be read, or none; the text names the server and its answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


class UnreachableError(ToxiproxyError):
    """Nothing listens at the address."""


@dataclass(frozen=True)
class _Address:
    url: str
    deadline: float
    session: requests.Session


_meant: contextvars.ContextVar[_Address] = contextvars.ContextVar("toxiproxy server")


class _Consumer(toxiproxy.api.APIConsumer):  # type: ignore[misc]  # the package has no annotations
    """Replaces the package's one server: asks the server of the context variable, if there is one."""

    @classmethod
    def get(cls, url: str, params: Any = None, **more: Any) -> Any:
        if _meant.get(None) is None:
            return super().get(url, params, **more)
        return _exchange("GET", url, params=params, **more)

    @classmethod
    def post(cls, url: str, data: Any = None, json: Any = None, **more: Any) -> Any:
        if _meant.get(None) is None:
            return super().post(url, data, json, **more)
        return _exchange("POST", url, data=data, json=json, **more)

    @classmethod
    def delete(cls, url: str, **more: Any) -> Any:
        if _meant.get(None) is None:
            return super().delete(url, **more)
        return _exchange("DELETE", url, **more)


toxiproxy.proxy.APIConsumer = toxiproxy.server.APIConsumer = _Consumer


class Toxiproxy:
    """One server. Every method returns once the server has answered, or raises `ToxiproxyError` by the deadline."""

    def __init__(self, url: str, deadline: float = DEADLINE) -> None:
        session = requests.Session()
        session.trust_env = False  # HTTP_PROXY must not be used for a server on loopback
        self.url = url.rstrip("/")
        self._address = _Address(self.url, deadline, session)
        self._client = toxiproxy.server.Toxiproxy()

    async def version(self) -> str:
        document = await self.call(lambda: _exchange("GET", "/version").json())
        return str(document["version"])

    async def create(
        self, name: str, upstream: str, listen: str = ANY_PORT, *, enabled: bool = True, **ours: Any
    ) -> "Proxy":
        """Create a proxy; `ours` are fields that only our relay has (`protocol`, `strict`)."""
        body = {"name": name, "upstream": upstream, "listen": listen, "enabled": enabled, **ours}
        return Proxy(self, await self.call(lambda: _exchange("POST", "/proxies", json=body).json()))

    async def proxies(self) -> dict[str, "Proxy"]:
        found: Mapping[str, Fields] = await self.call(lambda: _exchange("GET", "/proxies").json())
        return {name: Proxy(self, fields) for name, fields in found.items()}

    async def find(self, name: str) -> "Proxy":
        return Proxy(self, await self.call(lambda: _exchange("GET", _path(name)).json()))

    async def reset(self) -> None:
        await self.call(self._client.reset)

    async def call(self, work: Callable[[], R]) -> R:
        """Run calls of the package in a thread, for this server."""
        context = contextvars.copy_context()
        context.run(_meant.set, self._address)
        deadline = self._address.deadline + GRACE
        future = asyncio.get_running_loop().run_in_executor(None, context.run, work)
        try:
            return await asyncio.wait_for(future, deadline)
        except TimeoutError:
            raise ToxiproxyError(f"{self.url}: no complete answer within {deadline:g} s") from None

    async def close(self) -> None:
        self._address.session.close()


@dataclass
class Proxy:
    """One proxy of a server; its fields are those of the server's last answer."""

    server: Toxiproxy
    fields: Fields = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.fields["name"])

    @property
    def listen(self) -> str:
        return str(self.fields["listen"])

    @property
    def port(self) -> int:
        return int(self.listen.rpartition(":")[2])

    @property
    def enabled(self) -> bool:
        return bool(self.fields["enabled"])

    async def add(
        self,
        kind: str,
        stream: str = "downstream",
        *,
        name: str | None = None,
        toxicity: float = 1.0,
        **attributes: Any,
    ) -> str:
        """Add a toxic, in force on every open connection when this returns; return its name."""
        label = name or f"{kind}_{stream}"
        client = self._client()
        await self.server.call(
            lambda: client.add_toxic(type=kind, stream=stream, name=label, toxicity=toxicity, attributes=attributes)
        )
        return label

    async def update_toxic(self, name: str, toxicity: float | None = None, **attributes: Any) -> Fields:
        body: Fields = {"attributes": attributes}
        if toxicity is not None:
            body["toxicity"] = toxicity
        path = f"{_path(self.name)}/toxics/{quote(name, safe='')}"
        changed: Fields = await self.server.call(lambda: _exchange("POST", path, json=body).json())
        return changed

    async def remove(self, toxic: str) -> None:
        await self.server.call(lambda: self._client().destroy_toxic(quote(toxic, safe="")))

    async def toxics(self) -> list[Fields]:
        found: list[Fields] = await self.server.call(lambda: _exchange("GET", f"{_path(self.name)}/toxics").json())
        return found

    async def update(self, **changes: Any) -> None:
        """Change `listen`, `upstream` or `enabled`; `fields` are then what the server answered."""
        path = _path(self.name)
        self.fields = await self.server.call(lambda: _exchange("POST", path, json=changes).json())

    async def enable(self) -> None:
        await self.update(enabled=True)

    async def disable(self) -> None:
        await self.update(enabled=False)

    async def heal(self) -> None:
        """Remove every toxic and enable the proxy; only this one, unlike the server's own reset."""
        for toxic in await self.toxics():
            await self.remove(toxic["name"])
        if not (await self.server.find(self.name)).enabled:
            await self.enable()

    async def reset(self) -> None:
        """Reset every open connection; only our relay has this."""
        await self.server.call(lambda: _exchange("POST", f"{_path(self.name)}/reset"))

    async def rebind(self) -> int:
        """Give each UDP flow a new source port; return how many flows that were. Only our relay has this."""
        found: Fields = await self.server.call(lambda: _exchange("POST", f"{_path(self.name)}/rebind").json())
        return int(found["flows"])

    async def counters(self) -> Fields:
        """Return counts that include open connections; only our relay has them."""
        found: Fields = await self.server.call(lambda: _exchange("GET", f"{_path(self.name)}/counters").json())
        return found

    async def destroy(self) -> None:
        await self.server.call(self._client().destroy)

    def _client(self) -> Any:
        """Make the package's own object, with a quoted name, since it puts the name into URLs as it is."""
        return toxiproxy.proxy.Proxy(**{**self.fields, "name": quote(self.name, safe="")})


def _path(name: str) -> str:
    return f"/proxies/{quote(name, safe='')}"


def _exchange(method: str, path: str, **more: Any) -> requests.Response:
    address = _meant.get()
    try:
        answer = address.session.request(method, address.url + path, timeout=address.deadline, **more)
    except requests.ConnectionError as error:
        raise UnreachableError(f"nothing answers at {address.url}: {_innermost(error)}") from error
    except requests.RequestException as error:
        raise ToxiproxyError(f"{method} {address.url}{path}: {_innermost(error)}") from error
    if answer.status_code >= 400:
        said = _reason(answer)
        raise ToxiproxyError(f"{method} {address.url}{path}: {answer.status_code} {said}", answer.status_code)
    return answer


def _reason(answer: requests.Response) -> str:
    try:
        return str(answer.json()["error"])
    except (json.JSONDecodeError, requests.JSONDecodeError, KeyError, TypeError):
        return answer.text.strip()[:200]


def _innermost(error: BaseException) -> str:
    while (inner := error.__cause__ or error.__context__) is not None:
        error = inner
    return str(error) or type(error).__name__
