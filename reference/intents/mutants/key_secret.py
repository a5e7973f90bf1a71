"""Violations that show the secret of the idempotency key, or hide that it was made up (3.3)."""

import secrets

from prometheus_client import Gauge

from holdfast.reference.intents.acceptance import Acceptance, Call
from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.metrics import Metrics
from holdfast.reference.intents.mutants.table import violates
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import Settings


@violates("IN-KEY-07", 1, "The effective configuration, secret included, is logged at start-up.")
class LoggedSecret(IdemKeys):
    def load_secrets(self) -> list[bytes]:
        self.events.emit("config", idem_secret=self.settings.idem_secret)
        return super().load_secrets()


@violates("IN-KEY-07", 2, "The secret in use is written to Redis so that replicas can share it.")
class SharedSecret(Acceptance):
    async def record(self, call: Call) -> None:
        await self.node.link.call("SET", "config:idem_secret", self.node.keys.secrets[0])
        await super().record(call)


@violates("IN-KEY-07", 3, "The detail of a 400 quotes the key material, secret included.")
class QuotedSecret(Acceptance):
    async def validate(self, call: Call) -> None:
        try:
            await super().validate(call)
        except Refusal as refusal:
            refusal.members["details"] += f" Key of {self.node.settings.idem_secret}|{call.body}."
            raise


@violates("IN-KEY-07", 4, "A metric carries the settings as labels, secret included.")
class LabelledSecret(Metrics):
    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        Gauge("xg2g_config", "Settings.", ["idem_secret"], registry=self.registry).labels(settings.idem_secret).set(1)


@violates("IN-KEY-08", 1, "The fallback to a generated secret is silent.")
class Silent(IdemKeys):
    def warn(self) -> None:
        """Says nothing."""


@violates("IN-KEY-08", 2, "The warning prints the generated secret.")
class Printed(IdemKeys):
    def generated(self) -> bytes:
        secret = secrets.token_bytes(32)
        text = f"XG2G_IDEM_SECRET is not set: {secret.hex()} is used."
        self.events.emit("idem.secret_generated", level="warning", message=text)
        return secret


@violates("IN-KEY-08", 3, "The warning is logged although a secret is configured.")
class AlwaysWarned(IdemKeys):
    def load_secrets(self) -> list[bytes]:
        if self.settings.idem_secret:
            self.warn()
        return super().load_secrets()
