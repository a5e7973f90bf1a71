"""What an operator asks: `GET /health` and `GET /metrics`. No rule of the document depends on it."""

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from holdfast.reference.coordinator.node import Node


class Http:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path not in {"/health", "/metrics"}:
            return web.Response(status=404)
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, headers={"Allow": "GET"})
        if request.path == "/metrics":
            headers = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
            return web.Response(body=self.node.metrics.render(), headers=headers)
        return web.json_response(self.health(), status=200 if self.node.ready else 503)

    def health(self) -> dict[str, str | int | bool]:
        beat = self.node.heartbeat
        known = {"nodeId": self.node.id, "role": beat.role(), "status": beat.status()}
        return {**known, "jobCount": self.node.registry.count(), "redis": self.node.link.up, "ready": self.node.ready}
