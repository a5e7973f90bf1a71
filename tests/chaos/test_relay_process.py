"""The relay as a process of its own."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.chaos.relay.server import RelayServer
from holdfast.fixtures.launcher import Guardian, LaunchKind
from holdfast.fixtures.ports import PortPool
from holdfast.fixtures.redis import RedisServer
from holdfast.fixtures.resp import ask
from holdfast.target.deployment import StartError
from tests.chaos.differential.servers import Subject

RELAY = [sys.executable, "-c", "from holdfast.cli.main import main; main()", "relay"]
KINDS: list[LaunchKind] = ["fork", "exec"]


@pytest.mark.parametrize("launcher", KINDS)
async def test_redis_through_a_relay(guardian: Guardian, ports: PortPool, launcher: LaunchKind) -> None:
    await guardian.attach()
    redis = await RedisServer.start(guardian, ports, "redis")
    relay = await RelayServer.start(guardian, "relay", ports.take(), launcher=launcher)
    api, port = Subject("relay", relay.port), ports.take()
    proxy = {"name": "redis", "listen": f"127.0.0.1:{port}", "upstream": f"127.0.0.1:{redis.port}"}
    assert (await api.call("POST", "/proxies", json.dumps(proxy))).status == 201
    assert await ask(port, "PING") == "PONG"
    assert (await api.call("POST", "/proxies/redis/toxics", '{"type":"blackhole"}')).status == 200
    with pytest.raises(TimeoutError):
        await ask(port, "PING", deadline=0.3)
    assert (await api.call("POST", "/reset")).status == 204
    assert await ask(port, "PING") == "PONG"
    await relay.close()
    assert relay.process.returncode == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_it_with_status_zero(guardian: Guardian, ports: PortPool, number: signal.Signals) -> None:
    await guardian.attach()
    relay = await RelayServer.start(guardian, "relay", ports.take())
    reader, writer = await asyncio.open_connection("127.0.0.1", relay.port)
    await relay.process.signal(number)
    assert await relay.process.wait(10) == 0
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--port", "99999"], "'99999' is no port; write 0 to 65535"),
        (["--port", "-1"], "'-1' is no port"),
        (["--udp-idle", "-4"], "'-4' is no time in seconds above 0"),
    ],
)
def test_values_that_mean_nothing_are_told_in_one_line(words: list[str], told: str) -> None:
    ended = subprocess.run([*RELAY, *words], capture_output=True, text=True, timeout=30, check=False)
    assert ended.returncode == 2
    assert told in ended.stderr.splitlines()[-1]


async def test_a_taken_port_is_told_in_one_line(guardian: Guardian, ports: PortPool) -> None:
    await guardian.attach()
    first = await RelayServer.start(guardian, "first", ports.take())
    with pytest.raises(StartError):
        await RelayServer.start(guardian, "second", first.port)
    log = (guardian.folder / "second.log").read_text().splitlines()
    assert log == [f"holdfast relay: cannot serve the relay's API on 127.0.0.1:{first.port}: Address already in use"]
    await first.close()


def test_a_config_makes_proxies_and_a_bad_one_is_told_but_not_fatal(tmp_path: Path) -> None:
    good = tmp_path / "good.json"
    good.write_text('[{"name":"p","listen":"127.0.0.1:0","upstream":"127.0.0.1:1"}]')
    bad = tmp_path / "bad.json"
    bad.write_text("{")
    assert _first_lines(good, 1)[0].endswith(", p")
    told, served = _first_lines(bad, 2)
    assert told.startswith("relay: the config is not used: ")
    assert served.endswith(", no proxy yet")
    assert "is not used: No such file" in _first_lines(tmp_path / "none.json", 2)[0]


def test_the_command_takes_proxies_and_says_what_is_wrong_with_one() -> None:
    served = _first_lines(None, 1, "--tcp", "a,127.0.0.1:0,127.0.0.1:1", "--udp", "b,127.0.0.1:0,127.0.0.1:1")
    assert served[0].endswith(", a, b")
    for wrong, told in [
        ("a,127.0.0.1:99999,127.0.0.1:1", "holdfast relay: proxy a: listen udp: address 99999: invalid port"),
        ("a", "holdfast relay: error: argument --udp: 'a' is not of the form NAME,LISTEN,UPSTREAM"),
    ]:
        argv = [*RELAY, "--host", "127.0.0.1", "--port", "0", "--udp", wrong]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 2
        assert told in done.stderr.splitlines()[-1]
        assert "Traceback" not in done.stderr


def _first_lines(config: Path | None, count: int, *more: str) -> list[str]:
    argv = [*RELAY, "-host", "127.0.0.1", "-port", "0", *more, *(["-config", str(config)] if config else [])]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(count)]
        process.terminate()
        process.wait(10)
    assert process.returncode == 0
    return lines
