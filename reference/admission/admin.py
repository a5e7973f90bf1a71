"""Calls of operators: instances, characters, drain mode, and a janitor pass on demand."""

from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.reference.admission.rules import milliseconds
from holdfast.reference.admission.wire import Refusal, answer, flag_of, read_object, text_of, whole_of

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node

STATES = ("accepting", "maintenance", "shutting_down")
MOST_CAPACITY = 1_000_000
MOST_BULK = 100
DETAILS = ("note", "moderatorId", "internalReason")


class Admin:
    def __init__(self, node: "Node") -> None:
        self.node = node

    async def route(self, request: web.BaseRequest, path: list[str]) -> web.Response:
        if not self.node.identity.is_admin(request.headers.get("X-Admin-Token", "")):
            raise Refusal(401, "NOT_AUTHENTICATED", "X-Admin-Token is missing or not valid.")
        match request.method, path:
            case "PUT", ["instances", instance_id]:
                return await self.put_instance(instance_id, await read_object(request))
            case "PUT", ["characters", character_id]:
                return await self.put_character(character_id, await read_object(request))
            case "POST", ["drain-mode", "instance", instance_id]:
                return await self.drain(instance_id, await read_object(request))
            case "POST", ["drain-mode", "bulk"]:
                return await self.drain_bulk(await read_object(request))
            case "GET", ["drain-mode", "status"]:
                return await self.drain_status()
            case "POST", ["janitor", "run"]:
                return await self.run_janitor()
        raise Refusal(404, "NOT_FOUND", "There is no such call.")

    def check_id(self, text: Any, what: str) -> str:
        if not isinstance(text, str) or not self.node.rules.is_id(text):
            raise Refusal(400, "INVALID_REQUEST", f"The {what} id must match ^[a-zA-Z0-9_-]+$, 64 characters at most.")
        return text

    async def put_instance(self, instance_id: str, body: dict[str, Any]) -> web.Response:
        facts: dict[str, Any] = {"instanceId": self.check_id(instance_id, "instance")}
        capacity = whole_of(body, "capacity", 0, MOST_CAPACITY)
        state = text_of(body, "state")
        if state is not None and state not in STATES:
            raise Refusal(400, "INVALID_REQUEST", f"state must be one of {', '.join(STATES)}.")
        if capacity is not None:
            facts["capacity"] = capacity
        if state is not None:
            facts["state"] = state
        stored = await self.node.store.run("register_instance", facts)
        self.node.promoter.wake(instance_id)
        return answer({"instanceId": instance_id, "capacity": stored["capacity"], "state": stored["state"]})

    async def put_character(self, character_id: str, body: dict[str, Any]) -> web.Response:
        self.check_id(character_id, "character")
        user_id = text_of(body, "userId", most=128)
        if not user_id:
            raise Refusal(400, "INVALID_REQUEST", "userId must be given.")
        suspended = flag_of(body, "suspended", default=False)
        details = {name: text for name in DETAILS if (text := text_of(body, name)) is not None}
        facts = {"characterId": character_id, "userId": user_id, "suspended": suspended, **details}
        await self.node.store.run("register_character", facts)
        return answer({"characterId": character_id, "userId": user_id, "suspended": suspended})

    async def drain(self, instance_id: str, body: dict[str, Any]) -> web.Response:
        return answer(await self.switch_drain(self.check_id(instance_id, "instance"), body))

    async def switch_drain(self, instance_id: str, body: dict[str, Any]) -> dict[str, Any]:
        enabled = flag_of(body, "enabled")
        reason = text_of(body, "reason")
        ttl = whole_of(body, "ttlSeconds", 60, 86400)
        facts: dict[str, Any] = {"instanceId": instance_id, "enabled": enabled}
        if reason is not None:
            facts["reason"] = reason
        if ttl is not None:
            facts["ttlMs"] = milliseconds(ttl)
        stored = await self.node.store.run("switch_drain", facts)
        result: dict[str, Any] = {"instanceId": instance_id, "drainMode": enabled}
        if not enabled:
            return result | {"wasEnabled": stored["wasEnabled"]}
        if reason is not None:
            result["reason"] = reason
        if "expiresAt" in stored:
            result["expiresAt"] = stored["expiresAt"]
        return result

    async def drain_bulk(self, body: dict[str, Any]) -> web.Response:
        ids = body.get("instanceIds")
        if not isinstance(ids, list) or not 1 <= len(ids) <= MOST_BULK:
            raise Refusal(400, "INVALID_REQUEST", f"instanceIds must be a list of 1 to {MOST_BULK} ids.")
        checked = [self.check_id(each, "instance") for each in ids]
        results = [await self.switch_drain(each, body) for each in checked]
        operation = "enable" if flag_of(body, "enabled") else "disable"
        return answer(
            {
                "operation": operation,
                "totalInstances": len(results),
                "successCount": len(results),
                "failureCount": 0,
                "results": results,
            }
        )

    async def drain_status(self) -> web.Response:
        found = await self.node.store.run("drain_modes", {})
        modes: dict[str, Any] = {}
        for each in found["instances"]:
            ttl = {"ttl": round(each["ttlMs"] / 1000)} if "ttlMs" in each else {}
            modes[each["instanceId"]] = {"enabled": True, **ttl}
        settings = self.node.settings
        return answer(
            {
                "globalDrainMode": settings.drain,
                "maintenanceMode": settings.maintenance,
                "instanceDrainModes": modes,
                "timestamp": int(self.node.events.wall_clock() * 1000),
            }
        )

    async def run_janitor(self) -> web.Response:
        ended = await self.node.janitor.clean()
        return answer({"graceExpired": ended["grace_expired"], "stale": ended["network"]})
