"""Validate (3.1 step 2): the body of an intent, checked field by field. Whatever does not fit is 400."""

import re
from dataclasses import dataclass
from typing import Any

from holdfast.reference.intents.problems import invalid
from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared.bodies import BadBody, is_unicode, json_object

START = "stream.start"
STOP = "stream.stop"
FIELDS = frozenset(
    {
        *("type", "serviceRef", "profileID", "profile", "recordingId", "startMs", "sessionId", "correlationId"),
        *("params", "idempotencyKey", "playbackDecisionToken", "client", "hwaccel"),
    }
)
"""The last four are accepted and ignored."""
LARGEST_MS = 2**53 - 1
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_CORRELATION = re.compile(r"[A-Za-z0-9._-]{1,64}")

Body = dict[str, Any]


@dataclass(frozen=True)
class Intent:
    """A valid intent. A recording makes it VOD; `session_id` is that of a stop."""

    type: str
    service_ref: str = ""
    recording_id: str = ""
    profile: str = ""
    start_ms: int = 0
    session_id: str = ""
    correlation_id: str = ""

    @property
    def vod(self) -> bool:
        return bool(self.recording_id)


class Payloads:
    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def parse(self, raw: bytes) -> Body:
        try:
            return json_object(raw)
        except BadBody as error:
            raise invalid(str(error)) from None

    def validate(self, body: Body) -> Intent:
        self.check_fields(body)
        type_ = self.type_of(body)
        correlation = self.correlation_of(body)
        if type_ == STOP:
            return Intent(STOP, session_id=self.session_of(body), correlation_id=correlation)
        recording = self.recording_of(body)
        self.check_params(body, recording)
        return Intent(
            START,
            service_ref=self.service_of(body, recording),
            recording_id=recording,
            profile=self.profile_of(body),
            start_ms=self.offset_of(body),
            correlation_id=correlation,
        )

    def check_fields(self, body: Body) -> None:
        if unknown := sorted(body.keys() - FIELDS):
            raise invalid(f"Unknown field {unknown[0][:64]!r}.")

    def type_of(self, body: Body) -> str:
        value = body.get("type", START)
        if value not in (START, STOP):
            raise invalid(f"type must be {START} or {STOP}.")
        return str(value)

    def session_of(self, body: Body) -> str:
        value = body.get("sessionId")
        if not isinstance(value, str) or not _UUID.fullmatch(value):
            raise invalid(f"sessionId must be a UUID for {STOP}.")
        return value.lower()

    def correlation_of(self, body: Body) -> str:
        value = body.get("correlationId", "")
        if not isinstance(value, str) or (value and not _CORRELATION.fullmatch(value)):
            raise invalid("correlationId must be at most 64 letters, digits, dots, dashes and underscores.")
        return value

    def service_of(self, body: Body, recording: str) -> str:
        """Returns the channel, without the blanks around it. A recording may do without."""
        if recording and "serviceRef" not in body:
            return ""
        return self.part_of(body, "serviceRef")

    def recording_of(self, body: Body) -> str:
        return self.part_of(body, "recordingId") if "recordingId" in body else ""

    def part_of(self, body: Body, name: str) -> str:
        """Returns a text that becomes part of the key. A pipe would let different intents share one."""
        value = body.get(name)
        if not isinstance(value, str) or not value.strip() or not is_unicode(value):
            raise invalid(f"{name} must be a text that is not blank.")
        self.check_pipe(name, value)
        return value.strip()

    def check_pipe(self, name: str, value: str) -> None:
        if "|" in value:
            raise invalid(f"{name} must not have a pipe character in it.")

    def profile_of(self, body: Body) -> str:
        """Returns the profile, the default one if none is given; the old name may only repeat the new one."""
        given = [body[name] for name in ("profileID", "profile") if name in body]
        for value in given:
            self.check_profile(value)
        if len(set(given)) > 1:
            raise invalid("profile and profileID are different.")
        return given[0] if given else self.settings.profiles[0]

    def check_profile(self, value: Any) -> None:
        if not isinstance(value, str) or value not in self.settings.profiles:
            raise invalid(f"profileID must be one of {', '.join(self.settings.profiles)}.")

    def offset_of(self, body: Body) -> int:
        value = body.get("startMs", 0)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_MS:
            raise invalid("startMs must be a whole number of milliseconds, 0 or more.")
        return value

    def check_params(self, body: Body, recording: str) -> None:
        params = body.get("params", {})
        if not isinstance(params, dict) or not all(isinstance(value, str) for value in params.values()):
            raise invalid("params must be an object of texts.")
        mode = params.get("mode", "LIVE").upper()
        if mode not in ("LIVE", "RECORDING"):
            raise invalid("params.mode must be LIVE or RECORDING.")
        if mode == "RECORDING" and not recording:
            raise invalid("params.mode RECORDING needs a recordingId.")
