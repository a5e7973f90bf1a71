"""python -m tests.bench.intents_client http|direct REDIS_URL NODE_URL TOKEN STARTS IN_FLIGHT: prints its rate."""

# ruff: noqa: T201 - it reports on its standard output

import asyncio
import json
import sys
import time
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import uvloop

from holdfast.reference.intents.api import Api
from holdfast.reference.intents.components import Components
from holdfast.reference.intents.payloads import START, Intent
from holdfast.reference.intents.settings import Settings
from tests.bench.client import Worker, a_second, exchange, written

PROFILE = "universal"


def direct(api: Api) -> Worker:
    """Returns a worker that runs the script as the API does, with the same facts and over the API's link."""

    async def work(todo: Iterator[str]) -> None:
        for recording in todo:
            intent, session = Intent(START, recording_id=recording, profile=PROFILE), str(uuid.uuid4())
            record = {
                "sessionId": session,
                "mode": "RECORDING",
                "serviceRef": "",
                "recordingId": recording,
                "profileID": PROFILE,
                "startMs": "0",
                "correlationId": "",
                "bucket": api.keys.bucket(intent),
                "idemKey": api.keys.current(intent),
            }
            accepted = await api.store.accept(api.keys.candidates(intent), record, event(session, recording))
            assert accepted.made, recording

    return work


def event(session: str, recording: str) -> dict[str, str]:
    data = {
        "type": "session.start",
        "sessionId": session,
        "serviceRef": "",
        "profileId": PROFILE,
        "correlationId": "",
        "requestedAtUnix": int(time.time()),
        "recordingId": recording,
        "startMs": 0,
    }
    return {"type": "session.start", "data": json.dumps(data)}


def http(token: str, url: str) -> Worker:
    """Returns a worker that writes requests by hand over one connection, to leave out what a client library costs."""
    host, port = urlsplit(url).hostname, urlsplit(url).port

    async def work(todo: Iterator[str]) -> None:
        reader, writer = await asyncio.open_connection(host, port)
        for recording in todo:
            said = {"type": START, "recordingId": recording, "profileID": PROFILE, "startMs": 0}
            body = await exchange(reader, writer, written("/api/v3/intents", token, said))
            assert b'"status":"accepted"' in body.replace(b" ", b""), body
        writer.close()

    return work


async def rate(mode: str, redis: str, url: str, token: str, starts: int, in_flight: int) -> float:
    api = Api(Settings(redis_url=redis, idem_secret=uuid.uuid4().hex, api_leases=False), Components())
    api.link.start()
    await api.link.first(10)
    work = direct(api) if mode == "direct" else http(token, url)
    reached = await a_second(work, [str(uuid.uuid4()) for _ in range(starts)], in_flight)
    await api.link.close()
    return reached


if __name__ == "__main__":
    mode, redis, url, token, starts, in_flight = sys.argv[1:]
    print(uvloop.run(rate(mode, redis, url, token, int(starts), int(in_flight))))
