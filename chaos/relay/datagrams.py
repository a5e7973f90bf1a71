"""What each toxic does to datagrams. None is split or merged, and none holds up those behind it unless it says so.

A toxic gets each datagram by `put` and passes it on by `next`, at once, later, changed, twice or never. All of it
happens in the loop's thread without tasks: a toxic that waits has one timer (`Timed`), and one that holds datagrams a
heap of them by the time when each is due (`Holding`), so that a change of toxics needs to wait for nobody.

What holds for all of them:

- Toxicity is drawn for each flow; for loss, duplication, reordering and corruption it is drawn for each datagram.
- A toxic that is removed sends what it holds (`stop`), because the network has recovered. One that ends with its flow
  sends nothing more (`dispose`): its socket is gone. A changed one keeps what it holds, each with its old time.
- Every datagram that goes missing is counted (`FlowControl.dropped`), so that a receipt can tell a loss of ours from
  one of the target. What is held is limited, and beyond the limit dropped, as a router's buffer would.
- Draws come from the flow's own generator, so the same calls with the same seed hit the same datagrams.
"""

import abc
import asyncio
import heapq
import random
import time
from collections.abc import Callable, Mapping
from typing import Protocol

from holdfast.chaos.relay.programs import MILLISECOND, drawn_latency
from holdfast.chaos.relay.toxic import Toxic

HELD_LIMIT = 64 << 20
REORDER_DELAY = 10 * MILLISECOND


class FlowControl(Protocol):
    """What a toxic may do to the flow that it works on."""

    def dropped(self, data: bytes) -> None: ...

    def altered(self) -> None: ...

    def rebind(self) -> None: ...

    def forget(self) -> None: ...


class Datagrams:
    """A toxic at work on one direction of one flow; this base class lets everything pass."""

    each = False  # whether toxicity is drawn for each datagram, not once for the flow

    def __init__(self, toxic: Toxic, rng: random.Random, flow: FlowControl) -> None:
        self.toxic = toxic
        self.rng = rng
        self.flow = flow
        self.next: Callable[[bytes], None]
        self._hit = False

    def start(self) -> None:
        self._hit = True if self.each else self.chance(self.toxic.toxicity)
        if self._hit:
            self.begin()

    def put(self, data: bytes) -> None:
        if self._hit and (not self.each or self.chance(self.toxic.toxicity)):
            self.work(data)
        else:
            self.next(data)

    def chance(self, probability: float) -> bool:
        """Draw once. Every draw is made, also at 0 and 1: else a change of rates would shift all later draws."""
        return self.rng.random() < probability

    def begin(self) -> None:
        """Begin to hit this flow."""

    def work(self, data: bytes) -> None:
        self.next(data)

    def restart(self) -> None:
        """Apply a change of the toxic; what is held keeps the time that it was given."""
        self.start()

    def stop(self) -> None:
        """Send what is held, because the toxic was removed."""

    def dispose(self) -> None:
        """End with the flow: what is held is never sent."""


class Timed(Datagrams, abc.ABC):
    """A toxic with one timer, cancelled with the toxic."""

    _timer: asyncio.TimerHandle | None = None

    def wake_in(self, seconds: float) -> None:
        self.dispose()
        self._timer = asyncio.get_running_loop().call_later(max(0.0, seconds), self.wake)

    @abc.abstractmethod
    def wake(self) -> None: ...

    def restart(self) -> None:
        self.dispose()
        self.start()

    def stop(self) -> None:
        self.dispose()

    def dispose(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class Holding(Timed):
    """Holds datagrams, each until its own time."""

    def __init__(self, toxic: Toxic, rng: random.Random, flow: FlowControl) -> None:
        super().__init__(toxic, rng, flow)
        self._held: list[tuple[float, int, bytes]] = []
        self._number = 0
        self._size = 0

    def hold(self, due: float, data: bytes) -> None:
        if self._size + len(data) > HELD_LIMIT:
            self.flow.dropped(data)
            return
        self._number += 1  # of two that are due at once, the one that came first goes first
        self._size += len(data)
        heapq.heappush(self._held, (due, self._number, data))
        if self._held[0][1] == self._number:
            self.wake_in(due - time.monotonic())

    def wake(self) -> None:
        self._timer = None
        now = time.monotonic()
        while self._held and self._held[0][0] <= now:
            self._release()
        if self._held:
            self.wake_in(self._held[0][0] - now)

    def restart(self) -> None:
        self.start()

    def stop(self) -> None:
        super().stop()
        while self._held:
            self._release()

    def _release(self) -> None:
        _, _, data = heapq.heappop(self._held)
        self._size -= len(data)
        self.next(data)


class Latency(Holding):
    """Delays datagrams. Jitter lets them overtake each other, as networks do, unless `ordered` is set."""

    _last = 0.0

    def work(self, data: bytes) -> None:
        due = time.monotonic() + drawn_latency(self.toxic, self.rng)
        if self.toxic["ordered"]:
            due = self._last = max(due, self._last)
        self.hold(due, data)


class Bandwidth(Holding):
    """A line of `rate` KB/s behind a queue of `queue` bytes (0: one second's worth); drops what finds it full."""

    _free = 0.0

    def work(self, data: bytes) -> None:
        rate = self.toxic["rate"] * 1000
        if rate <= 0:
            self.next(data)
            return
        now = time.monotonic()
        start = max(now, self._free)
        if (start - now) * rate > (self.toxic["queue"] or rate):
            self.flow.dropped(data)
            return
        self._free = start + len(data) / rate
        self.hold(self._free, data)


class Reorder(Holding):
    """Holds a share of the datagrams for `delay` ms (0: 10 ms), so that those behind overtake them."""

    each = True

    def work(self, data: bytes) -> None:
        if self.chance(self.toxic["rate"]):
            self.hold(time.monotonic() + (self.toxic["delay"] * MILLISECOND or REORDER_DELAY), data)
        else:
            self.next(data)


class Blackhole(Datagrams):
    """Drops everything in its direction and leaves the flow as it is: the other direction goes on."""

    def work(self, data: bytes) -> None:
        self.flow.dropped(data)


class Timeout(Timed):
    """Drops everything, and forgets the flow after `timeout` ms of silence (0: never, a partition)."""

    def begin(self) -> None:
        if self.toxic["timeout"] > 0:
            self.wake_in(self.toxic["timeout"] * MILLISECOND)

    def work(self, data: bytes) -> None:
        self.flow.dropped(data)
        self.begin()

    def wake(self) -> None:
        self.flow.forget()


class LimitData(Datagrams):
    """Drops everything from the first datagram on that would exceed the limit."""

    _passed = 0
    _silent = False

    def begin(self) -> None:
        self._silent = False

    def work(self, data: bytes) -> None:
        self._silent = self._silent or self._passed + len(data) > self.toxic["bytes"]
        if self._silent:
            self.flow.dropped(data)
        else:
            self._passed += len(data)
            self.next(data)


class PacketLoss(Datagrams):
    """Loses a share of the datagrams; after a loss the next is likelier, `rate + correlation * (1 - rate)`."""

    each = True
    _lost = False

    def work(self, data: bytes) -> None:
        rate, correlation = (min(1.0, max(0.0, self.toxic[name])) for name in ("loss_rate", "correlation"))
        self._lost = self.chance(rate + correlation * (1 - rate) if self._lost and rate else rate)
        if self._lost:
            self.flow.dropped(data)
        else:
            self.next(data)


class Duplicate(Datagrams):
    """Sends a share of the datagrams twice, one right behind the other."""

    each = True

    def work(self, data: bytes) -> None:
        self.next(data)
        if self.chance(self.toxic["rate"]):
            self.next(data)


class Corrupt(Datagrams):
    """Flips one bit in a share of the datagrams."""

    each = True

    def work(self, data: bytes) -> None:
        if data and self.chance(self.toxic["rate"]):
            turned = bytearray(data)
            turned[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
            data = bytes(turned)
            self.flow.altered()
        self.next(data)


class Rebind(Timed):
    """Gives the flow a new source port every `interval` ms, as a NAT does that forgets its mappings."""

    def begin(self) -> None:
        if self.toxic["interval"] > 0:
            self.wake_in(self.toxic["interval"] * MILLISECOND)

    def wake(self) -> None:
        self.flow.rebind()
        self.begin()


KINDS: Mapping[str, type[Datagrams]] = {
    "latency": Latency,
    "bandwidth": Bandwidth,
    "timeout": Timeout,
    "limit_data": LimitData,
    "noop": Datagrams,
    "blackhole": Blackhole,
    "packet_loss": PacketLoss,
    "duplicate": Duplicate,
    "reorder": Reorder,
    "corrupt": Corrupt,
    "rebind": Rebind,
}
