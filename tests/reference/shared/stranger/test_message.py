"""A message in any dialect says the same to parsers that nobody here wrote: http.client and aiohttp's."""

import asyncio
import http.client
import io
import json
from collections.abc import Sequence
from typing import Any

import hypothesis.strategies as st
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http_parser import HttpRequestParser
from hypothesis import given
from multidict import CIMultiDict

from holdfast.reference.shared.stranger.message import Speaker
from holdfast.reference.shared.stranger.traits import Traits, draw_traits
from tests.reference.shared.stranger.test_jsontext import NAMES, without_unknown

WORDS = st.text("abcdefghijklmnopqrstuvwxyz", min_size=1, max_size=8)
HEADERS = st.lists(st.tuples(WORDS.map(lambda word: f"X-{word.title()}-Id"), WORDS), max_size=4)
BODIES = st.dictionaries(WORDS, st.integers(0, 9000) | WORDS | st.lists(WORDS), max_size=4)
OURS = {"content-length", "transfer-encoding", "connection", "content-type", "x-dialect", "server", "host"}
JSON = ("Content-Type", "application/json")


def written(first: str, headers: Sequence[tuple[str, str]], body: bytes, *, chunked: bool = False) -> bytes:
    """One message as a library writes it."""
    framing = ("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(len(body)))
    lines = [first, *(f"{name}: {value}" for name, value in [*headers, framing]), "", ""]
    framed = (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n" if chunked else body
    return "\r\n".join(lines).encode() + framed


def spoken(speaker: Speaker, raw: bytes, step: int) -> bytes:
    """What comes out when the library writes in pieces of this size."""
    return b"".join(each for at in range(0, len(raw), step) for each in speaker.feed(raw[at : at + step]))


class _Socket:
    def __init__(self, raw: bytes) -> None:
        self._raw = raw

    def makefile(self, *_: Any) -> io.BytesIO:
        return io.BytesIO(self._raw)


def read_answer(raw: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
    response = http.client.HTTPResponse(_Socket(raw))  # type: ignore[arg-type]  # all that it needs of a socket
    response.begin()
    return response.status, response.getheaders(), response.read()


def own(headers: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Headers that no framing is made of: values by lower-case name, in their order."""
    found = CIMultiDict(headers)
    return {name.lower(): found.getall(name) for name in found if name.lower() not in OURS}


@given(NAMES, st.sampled_from([200, 404, 503]), HEADERS, BODIES, st.booleans(), st.booleans(), st.integers(1, 400))
def test_an_answer_says_the_same(
    name: str, status: int, headers: list[tuple[str, str]], value: Any, closes: bool, chunked: bool, step: int
) -> None:
    closing = [("Connection", "close")] if closes else []
    raw = written(f"HTTP/1.1 {status} So", [*headers, JSON, *closing], json.dumps(value).encode(), chunked=chunked)
    seen, fields, body = read_answer(spoken(Speaker(draw_traits(name)), raw, step))
    assert (seen, own(fields)) == (status, own(headers))
    assert without_unknown(json.loads(body)) == value
    kind = next(each for field, each in fields if field.lower() == "content-type")
    assert kind.partition(";")[0] == "application/json"


@given(NAMES, HEADERS, BODIES, st.integers(1, 400))
def test_a_call_says_the_same(name: str, headers: list[tuple[str, str]], value: Any, step: int) -> None:
    raw = written("POST /a%2Fb?c=d HTTP/1.1", [("Host", "x"), *headers, JSON], json.dumps(value).encode())
    said = spoken(Speaker(draw_traits(name)), raw, step)

    async def parsed() -> tuple[Any, bytes]:
        loop = asyncio.get_running_loop()
        messages, _, _ = HttpRequestParser(BaseProtocol(loop), loop, 2**16).feed_data(said)
        ((message, payload),) = messages
        return message, await payload.read()

    message, body = asyncio.run(parsed())
    assert (message.method, message.path) == ("POST", "/a%2Fb?c=d")
    assert own(list(message.headers.items())) == own(headers)
    assert without_unknown(json.loads(body)) == value


@given(NAMES, st.integers(1, 100))
def test_several_answers_of_a_connection_keep_their_borders(name: str, step: int) -> None:
    bodies = [b'{"n": %d}' % number for number in range(3)]
    raw = b"".join(written("HTTP/1.1 200 OK", [JSON], body) for body in bodies)
    said = spoken(Speaker(draw_traits(name)), raw, step)
    stream = io.BytesIO(said)

    class Kept(_Socket):
        def makefile(self, *_: Any) -> io.BytesIO:
            return stream

    for number in range(3):
        response = http.client.HTTPResponse(Kept(b""))  # type: ignore[arg-type]  # all that it needs of a socket
        stream.close = lambda: None  # type: ignore[method-assign]  # one stream for all
        response.begin()
        assert json.loads(response.read())["n"] == number


def test_an_answer_to_head_and_one_without_content_have_no_body() -> None:
    for name in (f"{number}:a#1" for number in range(40)):
        speaker = Speaker(draw_traits(name))
        speaker.to_head = True
        said = b"".join(speaker.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"))
        assert said.endswith(b"\r\n\r\n")
        assert read_answer(b"".join(speaker.feed(written("HTTP/1.1 200 OK", [], b"later"))))[2] == b"later"
        none = b"".join(speaker.feed(b"HTTP/1.1 204 No Content\r\n\r\n"))
        assert b"length" not in none.lower()
        assert b"chunked" not in none


def test_a_caller_of_http_1_0_gets_no_chunks() -> None:
    speaker = Speaker(Traits("", framing="chunked"))
    assert b"chunked" not in b"".join(speaker.feed(written("HTTP/1.0 200 OK", [], b"x")))


def test_a_tunnel_is_left_alone() -> None:
    speaker = Speaker(draw_traits("4:a>1"))
    asked = b"CONNECT node-a.test:1 HTTP/1.1\r\nHost: node-a.test:1\r\n\r\n"
    assert b"".join(speaker.feed(asked)) == asked
    assert b"".join(speaker.feed(b"\x16\x03\x01anything")) == b"\x16\x03\x01anything"


def test_an_interim_answer_is_followed_by_the_final_one() -> None:
    for name in (f"{number}:a#1" for number in range(20)):
        speaker = Speaker(draw_traits(name))
        raw = b"HTTP/1.1 100 Continue\r\n\r\n" + written("HTTP/1.1 200 OK", [], b"final")
        assert read_answer(b"".join(speaker.feed(raw)))[2] == b"final"
