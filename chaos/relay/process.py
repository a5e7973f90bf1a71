"""The relay as a process of its own.

    main([--host HOST] [--port PORT] [--config FILE] [--seed N] …)

SIGTERM and SIGINT end it, with status 0. The flags of toxiproxy-server mean the same here, with one dash or two.
"""

import argparse
import asyncio
import errno
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

import uvloop

from holdfast.chaos.relay.api import VERSION, Api
from holdfast.chaos.relay.faults import Faults
from holdfast.chaos.relay.gojson import BodyError, read_objects
from holdfast.chaos.relay.http import HttpServer
from holdfast.chaos.relay.relay import Relay
from holdfast.chaos.relay.toxic import ApiError

HOST, PORT = "localhost", 8474


@dataclass(frozen=True)
class Options:
    host: str = HOST
    port: int = PORT
    config: Path | None = None
    seed: int = 0
    proxy_metrics: bool = False
    runtime_metrics: bool = False


class CannotServeError(Exception):
    """The API's address is not to be had."""


async def serve(options: Options, config: bytes = b"[]", faults: Faults | None = None) -> None:
    """Serve the proxies of `config`, and those that are asked for, until a signal ends it."""
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    relay = Relay(seed=options.seed, faults=faults)
    server = HttpServer(Api(relay, metrics=options.proxy_metrics, runtime=options.runtime_metrics).answer)
    try:
        port = await server.start(options.host, options.port)
    except OSError as error:
        reason = (
            os.strerror(error.errno) if error.errno and error.errno in errno.errorcode else str(error)
        )  # asyncio adds its own words
        raise CannotServeError(f"cannot serve the relay's API on {options.host}:{options.port}: {reason}") from error
    try:
        await _populate(relay, config)
        _say(f"relay: API of Toxiproxy {VERSION} on http://{options.host}:{port}, {len(relay.proxies)} proxies")
        await over.wait()
    finally:
        await server.close()
        await relay.close()


def _read_config(path: Path) -> bytes:
    """A config that cannot be used is told, and the relay serves without it, as Toxiproxy does."""
    try:
        return path.read_bytes()
    except OSError as error:
        _say(f"relay: {path} is not used: {error.strerror}")
        return b"[]"


async def _populate(relay: Relay, config: bytes) -> None:
    try:
        await relay.populate(read_objects(config))
    except BodyError as error:
        _say(f"relay: the config is not used: {error}")
    except ApiError as error:
        _say(f"relay: of the config, not all is used: {error.text}")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run(options: Options, faults: Faults | None = None) -> int:
    config = _read_config(options.config) if options.config else b"[]"
    try:
        uvloop.run(serve(options, config, faults))
    except CannotServeError as error:
        sys.stderr.write(f"holdfast relay: {error}\n")
        return 2
    return 0


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="holdfast relay", allow_abbrev=False)
    parser.add_argument("-host", "--host", default=HOST)
    parser.add_argument("-port", "--port", type=int, default=PORT)
    parser.add_argument("-config", "--config", type=Path)
    parser.add_argument("-seed", "--seed", type=int, default=0)
    parser.add_argument("-proxy-metrics", "--proxy-metrics", action="store_true")
    parser.add_argument("-runtime-metrics", "--runtime-metrics", action="store_true")
    if status := run(Options(**vars(parser.parse_args(argv)))):
        sys.exit(status)
