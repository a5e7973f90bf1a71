"""A server that admits everybody at once, and stalls once for a while; it knows how long each request really waited."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Stalling(ThreadingHTTPServer):
    """Stalls from `after` seconds past the first attempt, for `lasts` seconds."""

    request_queue_size = 512
    daemon_threads = True

    def __init__(self, after: float, lasts: float) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.after, self.lasts = after, lasts
        self.first: float | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def wait(self) -> None:
        if self.first is None:
            self.first = time.monotonic()
        since = time.monotonic() - self.first
        if self.after <= since < self.after + self.lasts:
            time.sleep(self.after + self.lasts - since)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this the two writes of an answer wait for the client's delayed acknowledgement.
    wbufsize = -1

    def do_PUT(self) -> None:
        self._answer({})

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Stalling)
        server.wait()
        self._answer({"outcome": "success", "sessionId": str(time.monotonic_ns())})

    def _answer(self, body: dict[str, str]) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_said: object) -> None:
        pass


@contextmanager
def stalling(after: float, lasts: float) -> Iterator[Stalling]:
    server = Stalling(after, lasts)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
