"""The relay as a process of its own.

    main([--host HOST] [--port PORT] [--config FILE] [--seed N] …)

SIGTERM and SIGINT end it, with status 0. The flags of toxiproxy-server mean the same here, with one dash or two.
"""

import argparse
import asyncio
import errno
import math
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import uvloop

from holdfast.chaos.relay.api import VERSION, Api
from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.gojson import BodyError, read_objects
from holdfast.chaos.relay.http import HttpServer
from holdfast.chaos.relay.proxy import PROTOCOLS, Wanted
from holdfast.chaos.relay.relay import Relay
from holdfast.chaos.relay.toxic import ApiError
from holdfast.chaos.relay.udp import IDLE

HOST, PORT = "localhost", 8474
LAST_PORT = 65_535
FORM = "NAME,LISTEN,UPSTREAM"


@dataclass(frozen=True)
class Options:
    host: str = HOST
    port: int = PORT
    config: Path | None = None
    seed: int = 0
    proxy_metrics: bool = False
    runtime_metrics: bool = False
    udp_idle: float = IDLE
    tcp: Sequence[Wanted] = ()
    udp: Sequence[Wanted] = ()


class CannotServeError(Exception):
    """The API's address, or a proxy of the command line, can't be listened on."""


async def serve(options: Options, config: bytes = b"[]", effects: Effects | None = None) -> None:
    """Serve the proxies of `config`, and those of the options, until SIGTERM or SIGINT."""
    over = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    relay = Relay(seed=options.seed, effects=effects, udp_idle=options.udp_idle)
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
        await _create(relay, [*options.tcp, *options.udp])
        names = ", ".join(relay.proxies) or "no proxy yet"
        _say(f"relay: API of Toxiproxy {VERSION} on http://{options.host}:{port}, {names}")
        await over.wait()
    finally:
        await server.close()
        await relay.close()


def _read_config(path: Path) -> bytes:
    """Read the config; one that can't be used is reported, and the relay serves without it, as Toxiproxy does."""
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


async def _create(relay: Relay, proxies: Sequence[Wanted]) -> None:
    for wanted in proxies:
        try:
            await relay.create(wanted)
        except ApiError as error:
            raise CannotServeError(f"proxy {wanted.name}: {error.text}") from error


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def run(options: Options, effects: Effects | None = None) -> int:
    config = _read_config(options.config) if options.config else b"[]"
    try:
        uvloop.run(serve(options, config, effects))
    except CannotServeError as error:
        sys.stderr.write(f"holdfast relay: {error}\n")
        return 2
    return 0


def main(argv: list[str], effects: Effects | None = None) -> None:
    if status := run(Options(**vars(_parser().parse_args(argv))), effects):
        sys.exit(status)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holdfast relay",
        description="Relays TCP and UDP with faults, behind the HTTP API of Toxiproxy. SIGTERM and SIGINT end it.",
        epilog="The flags of toxiproxy-server may be written with one dash.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--host", "-host", default=HOST, help=f"where the API listens ({HOST})")
    add("--port", "-port", type=_port, default=PORT, help=f"its port ({PORT}; 0: any)")
    add("--config", "-config", type=Path, metavar="FILE", help="proxies to begin with: a JSON array as for /populate")
    add("--seed", "-seed", type=int, default=0, metavar="N", help="seed of all draws: same calls, same draws (0)")
    add("--proxy-metrics", "-proxy-metrics", action="store_true", help="bytes of each proxy on /metrics")
    add("--runtime-metrics", "-runtime-metrics", action="store_true", help="metrics of the process on /metrics")
    add("--version", "-version", action="version", version=f"holdfast relay, API of Toxiproxy {VERSION}")
    for protocol in PROTOCOLS:
        text = f"a {protocol.upper()} proxy to begin with; may be given again"
        add(f"--{protocol}", action="append", default=[], type=_proxy(protocol), metavar=FORM, help=text)
    add(
        "--udp-idle",
        type=_silence,
        default=IDLE,
        metavar="SECONDS",
        help=f"forget a UDP flow after this much silence ({IDLE:g})",
    )
    return parser


def _port(text: str) -> int:
    """Reads a port; one above the last would be cut to 16 bits without a word."""
    if not text.isdecimal() or int(text) > LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port; write 0 to {LAST_PORT}")
    return int(text)


def _silence(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds above 0")
    return seconds


def _proxy(protocol: str) -> Callable[[str], Wanted]:
    def read(text: str) -> Wanted:
        words = text.split(",")
        if len(words) != 3 or not all(words):
            raise argparse.ArgumentTypeError(
                f"{text!r} is not of the form {FORM}, e.g. a,127.0.0.1:7000,127.0.0.1:4433"
            )
        return Wanted(name=words[0], listen=words[1], upstream=words[2], protocol=protocol)

    return read
