"""Faults on one link, each with the receipt of canaries that went through it.

The order is fixed: `put` asks through the calm link first and only then puts the fault in force; `proof` asks again, on
the same connection and on a new one; `heal` takes the fault back and asks until there is an answer. If the calm link
gave no answer, nothing that is seen later proves the fault.

What proves which fault:

- `delay`: both answers are late by at least the delay. The lower bound alone is judged: a slow machine adds to it.
- `rate`: both are late by what their bytes need at that rate, with as many bytes as make the difference sure.
- `stall`, `lose`: neither connection is answered or ended. Where a Redis is behind the link, it must have run the
  command if only answers are held, and must not have run it otherwise.
- `refuse`, `cut`: both connections are gone. `reset`: the old one is gone and the new one answers.

A canary that speaks TLS asks as soon as the fault is in force, since a server closes a connection on which no handshake
begins, and that would look like a fault.
"""

import asyncio
import math
import time
from collections.abc import Callable

from holdfast.chaos.faults.canary import Canary, Seen, stored
from holdfast.chaos.faults.questions import HttpQuestion, Question, RedisQuestion, TlsQuestion
from holdfast.chaos.proxied import ProxiedLink
from holdfast.target.deployment import Link
from holdfast.target.fault import Fault, Receipt

# A server may end the connection after its answer to one of these, so the second is asked on another one.
ASKED_ONCE = (HttpQuestion, TlsQuestion)
# A stall is proven by silence of this length; without it an answer takes about a millisecond.
SILENCE = 0.3
# A rate is proven with bytes that need SLOWED seconds at it; a proof by less than SEEN_SLOW does not count.
SLOWED = 0.6
SEEN_SLOW = 0.1
# By then a healed link answers; a reconnect may have to wait for a retransmission.
HEALED = 5.0


class LinkFault:
    """One fault on one link, watched by a canary that was connected before it and one that connects under it."""

    def __init__(self, fault: Fault, link: Link, ask: Callable[[], Question], store_port: int | None) -> None:
        self._fault = fault
        self._link = link
        self._ask = ask
        self._store_port = store_port
        self._question = ask()
        self._before = Canary(link.port, self._question)
        self._calm: Seen
        self._loaded: Seen  # as many questions as against the rate, before it
        self._asked_at_once: asyncio.Task[Seen] | None = None

    async def put(self) -> "LinkFault":
        self._calm = await self._before.ask(HEALED)
        self._loaded = await self._before.ask(HEALED, self._times()) if self._fault.kind == "rate" else self._calm
        if isinstance(self._question, ASKED_ONCE):
            self._before.close()
            await self._before.open()
        try:
            await _apply(self._fault, self._link)
        except BaseException:
            self._before.close()
            raise
        if isinstance(self._question, TlsQuestion):  # a server does not wait long for a ClientHello
            self._asked_at_once = asyncio.ensure_future(self._before.ask(self._timeout()))
        return self

    async def proof(self) -> Receipt:
        if not self._calm.answered:
            return Receipt(f"{self._link.name}: {self._calm.describe()} even before the fault", proven=False)
        fresh, within, times = Canary(self._link.port, self._ask()), self._timeout(), self._times()
        standing = self._asked_at_once or self._before.ask(within, times)
        old, new = await asyncio.gather(standing, fresh.ask(within, times))
        fresh.close()
        text = (
            f"{self._link.name}: {self._calm.describe()} before; under {self._fault.kind} on the open connection "
            f"{old.describe()}, on a new one {new.describe()}"
        )
        proven = self._fits(old) and (new.answered if self._fault.kind == "reset" else self._fits(new))
        if self._fault.kind in ("stall", "lose") and self._store_port and isinstance(self._question, RedisQuestion):
            ran = await stored(self._store_port, self._question)
            text += f"; the command {'was run' if ran else 'did not get there'}"
            proven = proven and ran == (self._direction() == "down")
        return Receipt(text, proven)

    async def heal(self) -> Receipt:
        if self._fault.kind == "lose":
            await self._link.cut()
        await self._link.heal()
        self._before.close()
        seen = await answers(self._link.port, self._ask)
        return Receipt(f"{self._link.name}: healed, {seen.describe()}", seen.answered)

    def _timeout(self) -> float:
        match self._fault.kind:
            case "delay":
                return 2 * self._span(1) + HEALED
            case "rate":
                return 4 * SLOWED + HEALED
            case "stall" | "lose":
                return SILENCE
        return HEALED  # refuse, cut and reset show sooner

    def _times(self) -> int:
        """Return how often to ask at once: against a rate, as often as makes the bytes need SLOWED seconds."""
        if self._fault.kind != "rate" or isinstance(self._question, TlsQuestion):
            return 1
        most = max(self._slowed(self._calm), 1)
        return math.ceil(SLOWED * self._rate() / most)

    def _slowed(self, seen: Seen) -> int:
        """Return the bytes that pass the slowed direction; if both are slowed, the larger count takes the time."""
        sizes = {"up": seen.up, "down": seen.down, "both": max(seen.up, seen.down)}
        return sizes[self._direction()]

    def _rate(self) -> float:
        return float(self._fault.options["kilobytes"]) * 1000

    def _fits(self, seen: Seen) -> bool:
        match self._fault.kind:
            case "delay":
                return seen.answered and seen.seconds >= self._span(-1) * 0.98
            case "rate":
                needed = 0.9 * self._slowed(seen) / self._rate()
                return seen.answered and seen.seconds >= needed >= max(SEEN_SLOW, 2 * self._loaded.seconds)
            case "stall" | "lose":
                return not seen.answered and not seen.gone
        return seen.gone  # refuse, cut, reset

    def _direction(self) -> str:
        return "down" if self._fault.kind == "lose" else str(self._fault.options.get("direction", "both"))

    def _span(self, sign: int) -> float:
        """Return the shortest (-1) or longest (1) time that the delay adds to a question and its answer."""
        seconds, jitter = (float(self._fault.options.get(name, 0.0)) for name in ("seconds", "jitter"))
        return (2 if self._direction() == "both" else 1) * (seconds + sign * jitter)


async def _apply(fault: Fault, link: Link) -> None:
    options = fault.options
    direction = str(options.get("direction", "both"))
    match fault.kind:
        case "delay":
            await link.delay(float(options["seconds"]), float(options.get("jitter", 0.0)), direction)
        case "stall":
            await link.stall(direction)
        case "lose":  # answers are held; `heal` cuts the connection, and they are lost with it
            await link.stall("down")
        case "refuse":
            await link.refuse()
        case "cut":
            await link.cut()
        case "reset":
            await _proxied(fault, link).reset()
        case "rate":
            await _proxied(fault, link).rate(math.ceil(float(options["kilobytes"])), direction)
        case _:
            raise ValueError(f"{fault.describe()}: a link knows delay, stall, lose, refuse, cut, reset and rate")


def _proxied(fault: Fault, link: Link) -> ProxiedLink:
    if isinstance(link, ProxiedLink):
        return link
    raise ValueError(f"{fault.describe()}: needs a fault engine; run it with `holdfast chaos`")


async def answers(port: int, ask: Callable[[], Question]) -> Seen:
    """Ask on new connections until there is an answer or HEALED has passed: the server may be just coming back."""
    end = time.monotonic() + HEALED
    while True:
        canary = Canary(port, ask())
        seen = await canary.ask(max(0.1, end - time.monotonic()))
        canary.close()
        if seen.answered or time.monotonic() > end:
            return seen
        await asyncio.sleep(0.02)
