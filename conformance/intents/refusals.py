"""Requests that are refused, by the rows that say so: senders who are nobody, and bodies that are no intent.

Each function makes them anew, with channels and recordings that no other check uses: a body that a target takes after
all starts a session of its own.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.check.finding import NotApplicable
from holdfast.conformance.intents.client import Intents
from holdfast.conformance.shared.wire import Request

UNKNOWN = "Bearer 3f9c27d1a85e4b60c7d2e91f08ab56c4"
IN_QUERY = ("token", "access_token", "api_token")
# IN-VALID-01: no JSON objects.
NO_OBJECTS = ("{", "", "null", "[]", '"x"')
# IN-VALID-02: in the place of serviceRef, and of profileID.
_NO_CHANNELS: tuple[Any, ...] = ("", "   ", "\t", 7, ["a"], {})
_NO_PROFILES = (3, True)
# IN-VALID-03: in the place of startMs.
_NO_OFFSETS = (-1, 10.5, "10000")


def nobodies(intents: Intents) -> list[str]:
    """Returns authorizations that identify nobody (IN-AUTH-01)."""
    token = intents.credential("write")
    basic = base64.b64encode(token.encode()).decode()
    return ["", UNKNOWN, "Bearer", f"Bearer {token[: len(token) // 2]}", f"Basic {basic}", token]


def in_query(intents: Intents, request: Request) -> dict[str, Request]:
    """Returns the request with the token in its URL, by the name of the parameter."""
    token = intents.credential("write")
    return {name: Request(request.method, request.path, request.body, query={name: token}) for name in IN_QUERY}


def without_channel(intents: Intents) -> dict[str, Any]:
    """Returns live starts without a serviceRef, or with one that names no channel (IN-VALID-02)."""
    sound = intents.start_body(intents.channel())
    bodies = {f"serviceRef {_shown(ref)}": {**sound, "serviceRef": ref} for ref in _NO_CHANNELS}
    return {"no serviceRef": _without(sound, "serviceRef"), **bodies}


def with_bad_profile(intents: Intents) -> dict[str, Any]:
    """Returns starts in a profile that the target does not have (IN-VALID-02)."""
    ref = intents.channel()
    profiles = (*_NO_PROFILES, intents.invalid_profile)
    return {f"profileID {_shown(profile)}": intents.adapter.start(ref, profile) for profile in profiles}


def with_bad_key_fields(intents: Intents) -> dict[str, Any]:
    """Returns starts whose fields would make no key, or one that others share (IN-VALID-03)."""
    bodies = {"a serviceRef with a pipe": intents.start_body(f"{intents.channel()}|{intents.channel()}")}
    return {**bodies, **_of_recordings(intents), **contradicting(intents)}


def _of_recordings(intents: Intents) -> dict[str, Any]:
    ID, offset = intents.recording(), intents.T.count("vod_first_ms")
    nameless = intents.start_body(intents.channel(), params={"mode": "RECORDING"}, startMs=offset)
    try:
        bodies = {f"startMs {_shown(ms)}": intents.vod_body(ID, ms) for ms in _NO_OFFSETS}
        return {
            "a recording without a name": nameless,
            **bodies,
            "a recordingId with a pipe": intents.vod_body(f"{ID}|y"),
        }
    except NotApplicable:  # no recordings by intents
        return {}


def contradicting(intents: Intents) -> dict[str, Any]:
    """Returns a start whose two fields for the profile differ (IN-VALID-03); none where there are no two."""
    body = intents.start_body(intents.channel(), intents.profiles[0])
    return {"two different profiles": {**body, "profile": intents.profiles[1]}} if "profileID" in body else {}


def ill_formed(intents: Intents) -> dict[str, Any]:
    """Returns intents that do not keep to the schema (IN-VALID-04)."""
    sound = intents.start_body(intents.channel())
    return {
        "type stream.pause": {**sound, "type": "stream.pause"},
        "an unknown field": {**sound, "bogus": 1},
        "a stop of nothing": _without(intents.stop_body(""), "sessionId"),
        "a stop of what is no UUID": intents.stop_body("not-a-uuid"),
    }


# Bodies whose refusals IN-VALID-04 reads, and all of the group.
Maker = Callable[[Intents], Mapping[str, Any]]
ANSWERED: tuple[Maker, ...] = (without_channel, with_bad_profile, ill_formed)
ALL: tuple[Maker, ...] = (*ANSWERED, with_bad_key_fields)


def bodies(intents: Intents, makers: Sequence[Maker] = ALL) -> dict[str, Any]:
    """Returns the bodies of these kinds, made anew, by what is wrong with each."""
    return {what: body for make in makers for what, body in make(intents).items()}


def _without(body: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in body.items() if name not in names}


def _shown(value: Any) -> str:
    return json.dumps(value)
