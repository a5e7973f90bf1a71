"""A relay that takes every toxic, shows it, and does nothing: the fault that was never there."""

from holdfast.chaos.relay import process
from holdfast.chaos.relay.faults import Faults
from holdfast.chaos.relay.stage import Work
from holdfast.chaos.relay.toxic import Toxic


class NoFaults(Faults):
    def tcp(self, toxic: Toxic) -> Work:  # noqa: ARG002 - whatever it is
        return self.spared()


def main(argv: list[str]) -> None:
    process.main(argv, NoFaults())
