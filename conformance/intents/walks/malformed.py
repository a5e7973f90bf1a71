"""Bodies that are no intents, by the names that the model has for them (seed 3.1 step 2, 3.3).

Each is sound but for one thing: repaired, it would start the channel or recording, or stop the session, that it is
about.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

Body = dict[str, Any]
UNKNOWN_PROFILE = "an unknown profile"
# Sent as they are.
TEXTS = {
    "half a body": "{",
    "an empty body": "",
    "null": "null",
    "a list": "[]",
    "a text": '"x"',
}
# Intents that name no session.
STOPS: Mapping[str, Body] = {
    "a stop of nothing": {"type": "stream.stop"},
    "a stop of what is no UUID": {"type": "stream.stop", "sessionId": "not-a-uuid"},
}
_CHANGES: Mapping[str, Callable[[Body], Body]] = {
    "no channel": lambda body: _without(body, "serviceRef", "recordingId"),
    "an empty channel": lambda body: _named(body, ""),
    "a blank channel": lambda body: _named(body, "   "),
    "a tab for a channel": lambda body: _named(body, "\t"),
    "a number for a channel": lambda body: _named(body, 7),
    "a list for a channel": lambda body: _named(body, ["a"]),
    "an object for a channel": lambda body: _named(body, {}),
    "a pipe in the channel": lambda body: _named(body, f"{_name(body)}|x"),
    "a number for a profile": lambda body: {**body, "profileID": 3},
    "a truth value for a profile": lambda body: {**body, "profileID": True},
    "a pipe in the profile": lambda body: {**body, "profileID": f"{body.get('profileID')}|0"},
    "two profiles": lambda body: {**body, "profile": f"{body.get('profileID')}x"},
    "a negative offset": lambda body: {**body, "startMs": -1},
    "a fraction for an offset": lambda body: {**body, "startMs": 10.5},
    "a text for an offset": lambda body: {**body, "startMs": "10000"},
    "a truth value for an offset": lambda body: {**body, "startMs": True},
    "a recording without a name": lambda body: {
        **_without(body, "recordingId"),
        "serviceRef": body["recordingId"],
        "params": {"mode": "RECORDING"},
    },
    "another type": lambda body: {**body, "type": "stream.pause"},
    "an unknown field": lambda body: {**body, "bogus": 1},
}
OF_RECORDINGS = frozenset(
    {
        "a negative offset",
        "a fraction for an offset",
        "a text for an offset",
        "a truth value for an offset",
        "a recording without a name",
    }
)
# The row that has each refused.
_ROWS = {
    "IN-VALID-01": tuple(TEXTS),
    "IN-VALID-03": ("a pipe in the channel", "a pipe in the profile", "two profiles", *sorted(OF_RECORDINGS)),
    "IN-VALID-04": ("another type", "an unknown field", *STOPS),
}
MALFORMED = {
    call: next((row for row, calls in _ROWS.items() if call in calls), "IN-VALID-02")
    for call in (*TEXTS, *_CHANGES, *STOPS, UNKNOWN_PROFILE)
}


def malformed_text(call: str, sound: Body, no_profile: str) -> str:
    """Returns the body of this name, as it goes over the wire; `no_profile` is one that the target does not have."""
    if call == UNKNOWN_PROFILE:
        return json.dumps({**sound, "profileID": no_profile})
    if call in TEXTS:
        return TEXTS[call]
    return json.dumps(STOPS[call] if call in STOPS else _CHANGES[call](sound))


def _without(body: Body, *names: str) -> Body:
    return {name: value for name, value in body.items() if name not in names}


def _name(body: Body) -> str:
    return str(body.get("recordingId") or body.get("serviceRef"))


def _named(body: Body, name: Any) -> Body:
    """Returns the body with another name of its channel or recording."""
    return {**body, "recordingId" if "recordingId" in body else "serviceRef": name}
