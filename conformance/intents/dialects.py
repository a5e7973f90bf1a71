"""How targets spell an intent: an adapter builds the bodies, so that checks speak one language.

The default is what the catalogue writes. `xg2g` is the public implementation's later spelling: the profile is a free
parameter, a start carries a decision token that is signed with a secret of the target's, and recordings are played by
other calls. Which one a target speaks is in its descriptor (`[dialect] intent_adapter`).
"""

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.check.finding import NotApplicable, NotObservable
from holdfast.conformance.intents import wire

# Seconds for which a decision token counts; the public implementation takes none that lasts longer than 120.
_DECIDED_FOR = 100


class Adapter:
    """The catalogue's own spelling."""

    name = "default"

    def __init__(self, dialect: Mapping[str, Any], fill: Callable[[str], str]) -> None:
        self._dialect = dialect
        self._fill = fill

    def start(self, ref: str, profile: Any, **fields: Any) -> dict[str, Any]:
        return _said(type=wire.START, serviceRef=ref, profileID=profile, **fields)

    def vod(self, recording: Any, profile: Any, ms: Any, **fields: Any) -> dict[str, Any]:
        return _said(type=wire.START, recordingId=recording, profileID=profile, startMs=ms, **fields)

    def stop(self, session_id: str) -> dict[str, Any]:
        return {"type": wire.STOP, "sessionId": session_id}


class Xg2g(Adapter):
    """The public implementation's spelling."""

    name = "xg2g"

    def start(self, ref: str, profile: Any, **fields: Any) -> dict[str, Any]:
        params = {**fields.pop("params", {}), **({"profile": profile} if profile is not None else {})}
        more = {"params": params or None, "playbackDecisionToken": self._decision(ref)}
        return _said(type=wire.START, serviceRef=ref, **more, **fields)

    def vod(self, *_intent: Any, **_fields: Any) -> dict[str, Any]:
        raise NotApplicable("the target plays recordings by other calls than intents")

    def _decision(self, ref: str) -> str:
        """Returns a JWT (HS256) which says that this channel may be played live."""
        secret = self._fill(str(self._dialect.get("decision_secret", "")))
        if not secret:
            raise NotObservable("[dialect] decision_secret")
        now = int(time.time())
        claims = {
            "iss": "xg2g",
            "aud": "xg2g/v3/intents",
            "sub": ref.upper().rstrip(":"),
            "jti": str(uuid.uuid4()),
            "iat": now,
            "nbf": now,
            "exp": now + _DECIDED_FOR,
            "mode": "live",
        }
        signed = f"{_encoded({'alg': 'HS256', 'typ': 'JWT'})}.{_encoded(claims)}"
        mac = hmac.new(secret.encode(), signed.encode(), hashlib.sha256).digest()
        return f"{signed}.{_base64(mac)}"


def _said(**fields: Any) -> dict[str, Any]:
    """Returns the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _encoded(part: Mapping[str, Any]) -> str:
    return _base64(json.dumps(part, separators=(",", ":")).encode())


def _base64(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


ADAPTERS: dict[str, type[Adapter]] = {each.name: each for each in (Adapter, Xg2g)}
