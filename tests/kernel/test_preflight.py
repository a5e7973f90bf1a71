import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.target.descriptor import Target, builtin_path, load
from holdfast.target.preflight import no_program, not_there, takes_connections
from holdfast.target.url_protocol import speaks_otherwise

STARTED = """
[target]
name = "mine"
spec = "lockd"
[[node]]
urls = {{ https = "https://127.0.0.1:{{port}}" }}
start = {start}
"""


def started_by(folder: Path, start: str) -> Target:
    path = folder / "mine.toml"
    path.write_text(STARTED.format(start=start))
    return load(path)


def test_a_program_that_is_not_there_is_named_with_the_file_and_the_remedy(tmp_path: Path) -> None:
    target = started_by(tmp_path, '"no-such-program --listen {port}"')
    assert no_program(target) == (
        f"there is no program no-such-program on PATH: install it, or mend [[node]] start in {tmp_path / 'mine.toml'}"
    )


def test_programs_that_are_there_or_stand_behind_a_placeholder_pass(tmp_path: Path) -> None:
    assert no_program(started_by(tmp_path, '["sh", "-c", "exit"]')) is None
    assert no_program(started_by(tmp_path, '"{dir}/server"')) is None
    assert no_program(load(builtin_path("lockd"))) is None


ATTACHED = """
[target]
name = "mine"
spec = "lockd"
[[node]]
{urls}
[observe]
redis = "redis://127.0.0.1:{port}/0"
"""


def attached(folder: Path, urls: str, port: int) -> Target:
    (folder / "mine.toml").write_text(ATTACHED.format(urls=urls, port=port))
    return load(folder / "mine.toml")


def test_a_target_without_urls_is_there_if_its_redis_is(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert not_there(attached(tmp_path, "", port)) is None
    remedy = f"start mine, or mend [observe] redis in {tmp_path / 'mine.toml'}"
    assert not_there(attached(tmp_path, "", port)) == f"nothing listens at redis://127.0.0.1:{port}/0: {remedy}"


def test_a_target_that_only_takes_datagrams_can_not_be_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as store:
        only = attached(tmp_path, 'urls = { wt = "https://127.0.0.1:1" }', store.getsockname()[1])
        assert not_there(only) is None
    said = not_there(attached(tmp_path, 'urls = { wt = "https://127.0.0.1:1", http = "http://127.0.0.1:1" }', 1))
    assert said
    assert "nothing listens at http://127.0.0.1:1:" in said


@pytest.mark.parametrize(
    ("kind", "url", "tcp"),
    [("http", "http://a", True), ("grpc", "http://a", True), ("wt", "https://a", False), ("x", "quic://a", False)],
)
def test_what_is_reached_by_tcp(kind: str, url: str, tcp: bool) -> None:
    assert takes_connections(kind, url) is tcp


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A port that answers whatever it is asked first with these bytes; the value is the port."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(4096)
                        connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.parametrize(
    ("scheme", "answer", "wrong"),
    [
        ("https", b"HTTP/1.1 400 Bad Request\r\n\r\n", "speaks no TLS; write http://"),
        ("https", b"\x15\x03\x01\x00\x02\x02\x28", ""),
        ("https", b"", ""),
        ("http", b"\x15\x03\x01\x00\x02\x02\x46", "speaks TLS; write https://"),
        ("http", b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n", "speaks TLS"),
        ("http", b"HTTP/1.1 404 Not Found\r\n\r\n", ""),
    ],
)
def test_a_port_that_speaks_the_other_protocol_is_named(scheme: str, answer: bytes, wrong: str) -> None:
    with answering(answer) as port:
        told = speaks_otherwise(f"{scheme}://127.0.0.1:{port}")
    assert told.startswith(f"{scheme}://127.0.0.1:{port} {wrong}") if wrong else told == ""


def test_the_wrong_scheme_is_told_with_its_key(tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        told = not_there(attached(tmp_path, f'urls = {{ https = "https://127.0.0.1:{port}" }}', port)) or ""
    assert told.startswith(f"[[node]] a urls https: https://127.0.0.1:{port} speaks no TLS; write http://")


def test_a_store_that_is_not_there_is_named(tmp_path: Path) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n") as port, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening, so that no other process does
        redis = f"redis://127.0.0.1:{taken.getsockname()[1]}/0"
        target = attached(tmp_path, 'urls = { http = "http://127.0.0.1:1" }', port)
        lost = replace(target, observe={"redis": redis}, nodes=(replace(target.nodes[0], urls=reached(port)),))
        assert (not_there(lost) or "").startswith(f"nothing listens at {redis}: start the Redis of mine, or mend")
        ours = replace(lost, observe={"redis": "{redis}"})
        assert not_there(ours) is None


def reached(port: int) -> dict[str, str]:
    return {"http": f"http://127.0.0.1:{port}"}
