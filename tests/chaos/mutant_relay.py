"""A relay that accepts and lists every toxic and does nothing: a fault that is reported and never injected."""

from holdfast.chaos.relay import process
from holdfast.chaos.relay.datagrams import Datagrams
from holdfast.chaos.relay.effects import Effects
from holdfast.chaos.relay.stage import Work
from holdfast.chaos.relay.toxic import Toxic


class NoEffects(Effects):
    def tcp(self, toxic: Toxic) -> Work:  # noqa: ARG002 - whatever it is
        return self.spared()

    def udp(self, toxic: Toxic) -> type[Datagrams]:  # noqa: ARG002 - whatever it is
        return Datagrams


def main(argv: list[str]) -> None:
    process.main(argv, NoEffects())
