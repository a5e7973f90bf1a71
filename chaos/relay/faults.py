"""The one place where toxics become what they do."""

from holdfast.chaos.relay.datagrams import KINDS, Datagrams
from holdfast.chaos.relay.programs import PASSING, WORKS
from holdfast.chaos.relay.stage import Work
from holdfast.chaos.relay.toxic import Toxic


class Faults:
    def tcp(self, toxic: Toxic) -> Work:
        return WORKS[toxic.type]

    def udp(self, toxic: Toxic) -> type[Datagrams]:
        return KINDS[toxic.type]

    def spared(self) -> Work:
        return PASSING
