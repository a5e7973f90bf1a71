"""Violations of the rows about answers while Redis is away."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from holdfast.reference.admission.attempts import Attempt, Attempts, fresh_id
from holdfast.reference.admission.follow_ups import FollowUps
from holdfast.reference.admission.http import Http
from holdfast.reference.admission.metrics import Metrics
from holdfast.reference.admission.mutants.table import violates
from holdfast.reference.admission.verdicts import Verdict
from holdfast.reference.admission.wire import Refusal
from holdfast.reference.shared.redislink import RedisAway, RedisLink

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

PAUSE = 0.1


async def tries_again(link: RedisLink, seconds: float) -> None:
    """Waits inside one call, as a client library does, until Redis is back or `seconds` have passed."""
    for _ in range(round(seconds / PAUSE)):
        if link.up:
            return
        await asyncio.sleep(PAUSE)


@violates("AD-OUT-01", 1, "A bare 500 without any retry hint.")
class BareError(Http):
    def answered(self, attempt: Attempt, verdict: Verdict) -> web.Response:
        if verdict.get("reason") == "INTERNAL_ERROR":
            return web.Response(status=500)
        return super().answered(attempt, verdict)


@violates("AD-OUT-01", 2, "The client library retries for about 50 s before the handler sees an error.")
class PatientLibrary(Attempts):
    async def settle(self, attempt: Attempt) -> Verdict:
        await tries_again(self.node.link, 50)
        return await super().settle(attempt)


@violates(
    "AD-OUT-01", 3, "The status handler swallows the error and answers 404, so the client believes its place lost."
)
class Swallowed(FollowUps):
    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        try:
            return await super().status(request, instance_id)
        except RedisAway:
            raise Refusal(404, "NOT_FOUND") from None


@violates("AD-OUT-02", 1, "The server falls back to an in-memory store and admits.")
class InMemory(Attempts):
    def outage(self, attempt: Attempt) -> Verdict:
        verdict = super().outage(attempt)
        if attempt.kind != "admit":
            return verdict
        return {"outcome": "success", "sessionId": fresh_id(), "reconnectionToken": fresh_id()}


@violates("AD-OUT-02", 2, "A cut-off node answers queued with a position from its cache.")
class CachedPlace(Attempts):
    def __init__(self, node: "Node") -> None:
        super().__init__(node)
        self.places: dict[str, Verdict] = {}

    def outage(self, attempt: Attempt) -> Verdict:
        return self.places.get(attempt.character_id) or super().outage(attempt)

    def finish(self, attempt: Attempt, verdict: Verdict) -> None:
        super().finish(attempt, verdict)
        if verdict["outcome"] == "queued":
            self.places[attempt.character_id] = verdict


@violates("AD-OUT-06", 1, "The scrape blocks on a Redis call for the gauges.")
class BlockingScrape(Metrics):
    async def scrape(self) -> bytes:
        with suppress(RedisAway):
            self.set_gauges(await self.node.store.gauges())
        return self.render()
