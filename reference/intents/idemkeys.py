"""The idempotency key (3.3): HMAC-SHA256 over the parts of an intent, and the secrets that it is made with."""

import hmac
import secrets
from collections.abc import Sequence

from holdfast.reference.intents.payloads import Intent
from holdfast.reference.intents.settings import Settings
from holdfast.reference.shared.jsonlog import JsonLog

LABEL = "v3_intent"
LIVE_BUCKET = "0"
VOD_BUCKET_MS = 1000


class IdemKeys:
    def __init__(self, settings: Settings, events: JsonLog) -> None:
        self.settings = settings
        self.events = events
        self.secrets: Sequence[bytes] = self.load_secrets()

    def load_secrets(self) -> list[bytes]:
        """Returns the current secret, then the previous one. A missing one is made up, once for this process."""
        current = self.settings.idem_secret.encode() or self.generated()
        previous = self.settings.idem_secret_previous.encode()
        return [current, previous] if previous else [current]

    def generated(self) -> bytes:
        self.warn()
        return secrets.token_bytes(32)

    def warn(self) -> None:
        self.events.emit(
            "idem.secret_generated",
            level="warning",
            message="XG2G_IDEM_SECRET is not set: a random secret is used, and idempotency ends with this process.",
        )

    def target(self, intent: Intent) -> str:
        return intent.recording_id if intent.vod else intent.service_ref

    def bucket(self, intent: Intent) -> str:
        """Returns 0 for live intents, so that deduplication is global, and whole seconds for a recording."""
        return str(intent.start_ms // VOD_BUCKET_MS) if intent.vod else LIVE_BUCKET

    def material(self, intent: Intent) -> str:
        return "|".join([LABEL, intent.type, self.target(intent), intent.profile, self.bucket(intent)])

    def mac(self, secret: bytes, text: str) -> str:
        return hmac.digest(secret, text.encode(), "sha256").hex()

    def current(self, intent: Intent) -> str:
        """Returns the key under which a new session is stored."""
        return self.mac(self.secrets[0], self.material(intent))

    def candidates(self, intent: Intent) -> list[str]:
        """Returns the keys to look up, in their order."""
        return [self.mac(secret, self.material(intent)) for secret in self.secrets]
