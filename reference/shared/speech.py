"""How a node speaks HTTP: which server answers, how calls leave, what the TLS of the listener is like.

`Speech` is aiohttp as it is. A stranger's speech (`stranger/voice.py`) takes its place when the node is started with
`--stranger`, and changes only what HTTP, TLS and JSON leave open. No rule of a spec is here.
"""

import ssl
from collections.abc import Awaitable, Callable
from typing import Any

import aiohttp
from aiohttp import web

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Speech:
    def server(self, handler: Handler) -> web.Server:
        return web.Server(handler, access_log=None)

    def connector(self, **options: Any) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(**options)

    def listener(self, context: ssl.SSLContext | None) -> ssl.SSLContext | None:
        return context


PLAIN = Speech()
