"""What a client may ask for after its attempt: poll, leave, leave the queue, cancel an offer (spec 5, 7, 10).

Every follow-up is for an authenticated user, and a script checks the ownership before it changes or shows anything.
None of them is an attempt: they count neither for the limiter nor in the attempt counter.
"""

from typing import TYPE_CHECKING, Any

from aiohttp import web

from holdfast.reference.admission.wire import Refusal, answer, read_object, text_of

if TYPE_CHECKING:
    from holdfast.reference.admission.node import Node


class FollowUps:
    def __init__(self, node: "Node") -> None:
        self.node = node

    def user(self, request: web.BaseRequest, instance_id: str) -> str:
        """Returns the authenticated user; raises Refusal for bad credentials and for an id that no key may contain."""
        user_id = self.node.identity.authenticate(request.headers.get("Authorization", ""))
        if user_id is None:
            raise Refusal(401, "NOT_AUTHENTICATED")
        if not self.node.rules.is_id(instance_id):
            raise Refusal(400, "INVALID_INSTANCE")
        return user_id

    def character(self, request: web.BaseRequest) -> str:
        character_id = request.query.get("characterId", "")
        if not character_id:
            raise Refusal(400, "NO_ACTIVE_CHARACTER", "The query must have a characterId.")
        if not self.node.rules.is_id(character_id):
            raise Refusal(404, "CHARACTER_NOT_FOUND")
        return character_id

    async def status(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        user_id = self.user(request, instance_id)
        found = await self.node.store.status(user_id, self.character(request), instance_id)
        if found["state"] == "absent":
            raise Refusal(404, "NOT_FOUND", "The character is not waiting here.")
        return answer({name: value for name, value in found.items() if name != "at"})

    async def unqueue(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        user_id = self.user(request, instance_id)
        character_id = self.character(request)
        facts = {"userId": user_id, "characterId": character_id, "instanceId": instance_id}
        found = await self.node.store.run("unqueue", facts)
        if found.get("foreign"):
            self.denied(user_id, character_id, instance_id)
        return answer({"removed": found["removed"]})

    async def cancel(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        user_id = self.user(request, instance_id)
        token = request.query.get("replaceToken", "")
        if not self.node.rules.is_token(token):
            raise Refusal(404, "INVALID_REPLACE_TOKEN")
        facts = {"userId": user_id, "replaceToken": token, "instanceId": instance_id}
        found = await self.node.store.run("cancel", facts)
        if found.get("foreign"):
            self.denied(user_id, found["characterId"], instance_id)
        if not found["cancelled"]:
            raise Refusal(404, "INVALID_REPLACE_TOKEN")
        return answer({"cancelled": True})

    async def disconnect(self, request: web.BaseRequest, instance_id: str) -> web.Response:
        user_id = self.user(request, instance_id)
        session_id = text_of(await read_object(request), "sessionId") or ""
        if not self.node.rules.is_token(session_id):
            raise Refusal(404, "NOT_FOUND", "There is no such session.")
        facts = {"userId": user_id, "sessionId": session_id, "instanceId": instance_id}
        left = await self.node.store.leave(facts)
        if not left["found"]:
            raise Refusal(404, "NOT_FOUND", "There is no such session.")
        if left.get("foreign"):
            self.denied(user_id, left["characterId"], instance_id)
        self.left(facts, left["characterId"])
        self.node.kicks.send(left.get("socket"), 1000)
        return answer({"slotFreed": True, "gracefulDisconnect": True})

    def left(self, facts: dict[str, Any], character_id: str) -> None:
        """Logs that a session has ended by the wish of its user, and promotes into the freed slot."""
        self.node.events.emit(
            "connection.disconnected",
            instanceId=facts["instanceId"],
            characterId=character_id,
            userId=facts["userId"],
            sessionId=facts["sessionId"],
            reason="user",
        )
        self.node.promoter.wake(facts["instanceId"])

    def denied(self, user_id: str, character_id: str, instance_id: str) -> None:
        """Logs the attempt to act for a character of another user, then refuses."""
        self.node.events.emit(
            "security_event",
            eventType="access_denied",
            userId=user_id,
            characterId=character_id,
            instanceId=instance_id,
        )
        raise Refusal(403, "CHARACTER_NOT_OWNED")
