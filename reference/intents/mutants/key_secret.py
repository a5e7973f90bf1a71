"""Violations that show the secret of the idempotency key (3.3)."""

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
