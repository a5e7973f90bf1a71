"""A raw answer is read as its framing says: by its length, in chunks, or until the target closes."""

import asyncio

import pytest

from holdfast.check.raw_http import RawAnswer, _read

HEAD = b"HTTP/1.1 400 \r\nx-kind:json\r\n"
FRAMED = {
    "a length": HEAD + b"content-length:  7\r\n\r\n" + b'{"a":1}' + b"not read",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b'3;part=1\r\n{"a\r\n4\r\n":1}\r\n0\r\n\r\n',
    "the end of the connection": HEAD + b"Connection: close\r\n\r\n" + b'{"a":1}',
}


@pytest.mark.parametrize("raw", FRAMED.values(), ids=FRAMED)
def test_a_body_is_whole_whatever_frames_it_and_in_whatever_pieces_it_comes(raw: bytes) -> None:
    async def read() -> RawAnswer:
        reader = asyncio.StreamReader()
        reading = asyncio.create_task(_read(reader))
        for at in range(0, len(raw), 5):
            reader.feed_data(raw[at : at + 5])
            await asyncio.sleep(0)
        reader.feed_eof()
        return await reading

    answer = asyncio.run(read())
    assert (answer.status, answer.headers["X-Kind"], answer.body) == (400, "json", b'{"a":1}')
