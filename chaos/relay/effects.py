"""Which effect a toxic has: the only place where a toxic's type becomes code, so that tests can replace all effects."""

from holdfast.chaos.relay.datagrams import KINDS, Datagrams
from holdfast.chaos.relay.programs import PASSING, WORKS
from holdfast.chaos.relay.stage import Work
from holdfast.chaos.relay.toxic import Toxic


class Effects:
    """`spared` is what a connection gets that the toxicity did not hit."""

    def tcp(self, toxic: Toxic) -> Work:
        return WORKS[toxic.type]

    def udp(self, toxic: Toxic) -> type[Datagrams]:
        return KINDS[toxic.type]

    def spared(self) -> Work:
        return PASSING
