"""Generated input: repeatable, bounded, and judged against the contract that it came from."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
import requests

from holdfast.check.finding import Finding
from holdfast.check.generated import Round, answered, fuzz, json_values, try_examples

SCHEMA = {"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}}
CONTRACT = {
    "openapi": "3.1.0",
    "info": {"title": "echo", "version": "1"},
    "paths": {
        "/echo": {
            "post": {
                "tags": ["echo"],
                "requestBody": {"required": True, "content": {"application/json": {"schema": SCHEMA}}},
                "responses": {
                    "200": {"description": "it", "content": {"application/json": {"schema": SCHEMA}}},
                    "400": {"description": "no", "content": {"application/json": {"schema": {"type": "object"}}}},
                },
            }
        }
    },
}


@contextmanager
def echo(*, careless: bool) -> Iterator[str]:
    """Refuses a body that is no object with a number in it; a careless server accepts every body."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                value = json.loads(raw)
            except ValueError:
                value = None
            sound = isinstance(value, dict) and isinstance(value.get("n"), int) and not isinstance(value["n"], bool)
            status = 200 if sound else 500 if careless else 400
            body = json.dumps({"n": value["n"]} if sound else {}).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def drive(url: str, *rounds: Round) -> list[str]:
    asked: list[str] = []

    def ask(case: Any, caller: str) -> Any:
        asked.append(caller)
        with requests.Session() as session:
            return case.call(base_url=url, session=session)

    fuzz(CONTRACT, "echo", rounds, seed=1, count=5, ask=ask)
    return asked


def test_each_round_asks_as_its_caller_and_a_careful_server_passes() -> None:
    with echo(careless=False) as url:
        asked = drive(url, Round("a"), Round("b", sound=False))
    assert set(asked) == {"a", "b"}
    assert len(asked) <= 10


def test_an_undocumented_answer_is_a_finding_with_the_request_to_repeat() -> None:
    with echo(careless=True) as url, pytest.raises(Finding, match="500") as found:
        drive(url, Round("a", sound=False))
    assert "curl -X POST" in str(found.value)
    assert url in str(found.value)


def test_the_same_seed_draws_the_same_values() -> None:
    def drawn(seed: int) -> list[str]:
        values: list[str] = []
        try_examples(seed, json_values("name", "other"), 20, lambda value: values.append(repr(value)))
        return values

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(drawn(1)) <= 20
    assert any("'name'" in value for value in drawn(1))


@pytest.mark.parametrize(
    ("error", "how"), [(requests.ReadTimeout(), "it took too long"), (requests.ConnectionError(), "no connection")]
)
def test_a_request_without_an_answer_is_a_finding(error: Exception, how: str) -> None:
    def send() -> None:
        raise error

    with pytest.raises(Finding, match=how) as found:
        answered(send)
    assert found.value.late
