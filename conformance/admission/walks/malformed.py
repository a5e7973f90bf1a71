"""Attempts that lack what they need, by the names that the model has for them (§4, §11)."""

import json

from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.instance import Instance
from holdfast.conformance.admission.wire import Answer

# What is wrong with each, and the code that it gets; none for what can't be read, where a plain 400 does as well.
STRANGE, NAMELESS, UNREADABLE = "NOT_AUTHENTICATED", "NO_ACTIVE_CHARACTER", ""
MALFORMED = {
    "without credentials": STRANGE,
    "with altered credentials": STRANGE,
    "without a character": NAMELESS,
    "with an empty character": NAMELESS,
    "with a list for a body": UNREADABLE,
    "with half a body": UNREADABLE,
}


async def attempt_malformed(call: str, room: Instance, person: Character, node: str) -> Answer:
    """Each is sound but for one thing: repaired, it would be an attempt like any other."""
    admission, bearer = room.admission, person.user.bearer
    sound, mine = room.request(person.id), {"Authorization": f"Bearer {bearer}"}
    body = json.dumps(sound.body)
    match call:
        case "without credentials":
            return await admission.call(sound, None, node=node)
        case "with altered credentials":
            altered = f"{bearer[:-8]}{'0' * 8}"
            return await admission.call(sound, None, node=node, headers={"Authorization": f"Bearer {altered}"})
        case "without a character":
            return await admission.call(room.request(None), person.user, node=node)
        case "with an empty character":
            return await admission.call(room.request(""), person.user, node=node)
        case "with a list for a body":
            body = f"[{body}]"
        case _:
            body = body[: len(body) // 2]
    headers = {**mine, "Content-Type": "application/json"}
    return await admission.raw(sound.method, sound.path, node=node, data=body.encode(), headers=headers)
