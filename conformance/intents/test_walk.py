"""Walks over the model of the spec (`walks/`): commands drawn from a seed, everything compared after each step."""

from collections.abc import Callable
from functools import partial

from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.walk.campaign import Ground, Walks
from holdfast.check.walk.turns import Turns
from holdfast.conformance.intents.client import PHASE_1, Intents
from holdfast.conformance.intents.walks import commands
from holdfast.conformance.intents.walks.commands import Sight
from holdfast.conformance.intents.walks.model import IntentsModel
from holdfast.conformance.intents.walks.spans import Spans
from holdfast.conformance.intents.walks.stage import Stage
from holdfast.conformance.intents.walks.state import State
from holdfast.conformance.intents.walks.world import IntentsWorld
from holdfast.spec.capability import Capability

# Walkers, each with a deployment of its own.
WALKERS = 4
REPLICAS, WITH_STANDBY = {"api": 2, "worker": 1}, {"api": 2, "worker": 2}
# The rows that rules of the model state.
ROWS = (
    "IN-AUTH-01",
    "IN-AUTH-02",
    "IN-AUTH-03",
    "IN-BUSY-01",
    "IN-BUSY-02",
    "IN-BUSY-04",
    "IN-BUSY-05",
    "IN-BUSY-06",
    "IN-BUSY-07",
    "IN-DEDUP-01",
    "IN-DEDUP-02",
    "IN-DEDUP-03",
    "IN-DEDUP-04",
    "IN-HERD-01",
    "IN-HERD-02",
    "IN-HERD-04",
    "IN-IDEM-01",
    "IN-IDEM-02",
    "IN-IDEM-03",
    "IN-IDEM-04",
    "IN-IDEM-05",
    "IN-KEY-01",
    "IN-KEY-02",
    "IN-KEY-03",
    "IN-KEY-04",
    "IN-LAN-01",
    "IN-LAN-02",
    "IN-LAN-03",
    "IN-QUEUE-01",
    "IN-QUEUE-02",
    "IN-QUEUE-03",
    "IN-QUEUE-04",
    "IN-QUEUE-05",
    "IN-QUEUE-06",
    "IN-QUEUE-07",
    "IN-RUN-01",
    "IN-RUN-02",
    "IN-RUN-03",
    "IN-RUN-04",
    "IN-RUN-05",
    "IN-RUN-06",
    "IN-RUN-08",
    "IN-SIDE-01",
    "IN-SIDE-02",
    "IN-TUNER-01",
    "IN-TUNER-02",
    "IN-TUNER-03",
    "IN-TUNER-04",
    "IN-VALID-01",
    "IN-VALID-02",
    "IN-VALID-03",
    "IN-VALID-04",
)
# Those that rules about the flag state, while it is on.
PHASED = (
    "IN-PHASE-01",
    "IN-PHASE-02",
    "IN-PHASE-03",
    "IN-PHASE-04",
    "IN-PHASE-05",
    "IN-PHASE-08",
    "IN-SIDE-03",
)
# Those that rules about workers and APIs state which end and begin anew.
CRASHED = (
    "IN-KEY-06",
    "IN-KILL-01",
    "IN-KILL-02",
    "IN-KILL-03",
    "IN-KILL-04",
    "IN-KILL-05",
    "IN-KILL-06",
    "IN-KILL-07",
    "IN-KILL-09",
    "IN-KILL-10",
    "IN-PHASE-06",
    "IN-QUEUE-08",
    "IN-RUN-07",
)


@verifies(
    *ROWS,
    isolation="quiet",
    nodes=REPLICAS,
    waits="lease_ttl + past_ttl + give_up",
    walk_steps=240,
    needs=["wire"],
)
async def test_whatever_clients_do_leaves_what_the_model_says(intents: Intents, walks: Walks, T: SpecTime) -> None:
    await _walk(intents, walks, T, phase=2)


@verifies(
    *ROWS,
    *PHASED,
    isolation="quiet",
    nodes=REPLICAS,
    settings=PHASE_1,
    waits="lease_ttl + past_ttl + give_up",
    walk_steps=120,
    needs=["wire", "control.restart"],
)
async def test_whatever_clients_do_in_phase_1_leaves_what_the_model_says(
    intents: Intents, walks: Walks, T: SpecTime
) -> None:
    await _walk(intents, walks, T, phase=1)


@verifies(
    *ROWS,
    *PHASED,
    *CRASHED,
    isolation="disruptive",
    nodes=WITH_STANDBY,
    start="by hand",
    waits="2*lease_ttl + past_ttl + give_up",
    walk_steps=60,
    needs=["wire", "multi_node", "control.kill", "control.restart"],
)
async def test_whatever_crashes_meanwhile_leaves_what_the_model_says(
    intents: Intents, walks: Walks, T: SpecTime
) -> None:
    """The same while workers are killed, stopped or stand still, and APIs begin anew in another phase."""
    _ = intents.lone_workers
    shown, known = _shown(intents), intents.context.target.settings
    upsets = [commands.KILL, commands.BEGIN, commands.API]
    upsets += [commands.TERM] if Capability.CONTROL_TERM in shown else []
    upsets += [commands.STAND, commands.RESUME] if Capability.CONTROL_PAUSE in shown else []
    flagged = "api_leases" in known and intents.context.target.dialect.get("phase", 2) != 3
    upsets += [commands.FLIP] if flagged else []
    upsets += list(commands.SECRETS) if {"idem_secret", "idem_secret_previous"} <= known.keys() else []
    await _walk(intents, walks, T, phase=2, upsets=tuple(upsets))


async def _walk(intents: Intents, walks: Walks, T: SpecTime, *, phase: int, upsets: tuple[str, ...] = ()) -> None:
    sight = _sight(intents, upsets)
    spans = Spans.of(T, intents.running_states, sees_leases=sight.store)
    walkers = _walkers(walks, upset=bool(upsets)) if intents.context.target.startable else 1

    async def build(number: int) -> Stage:
        return await Stage.build(await intents.another() if number else intents, sight, phase)

    async def begin(stage: Stage, done: Callable[[], None]) -> Ground[State]:
        start = await stage.begin()
        return Ground(IntentsModel(spans, sight), IntentsWorld(stage, spans, done), start)

    stages = Turns(build, walkers)
    await walks.run(partial(stages.begin, begin), walkers=walkers)


def _walkers(walks: Walks, *, upset: bool) -> int:
    """Beside other checks a few have to do: each has a deployment of its own."""
    return WALKERS if not walks.short else 1 if upset else 2


def _shown(intents: Intents) -> frozenset[str]:
    return intents.context.target.capabilities() & intents.context.target.in_profile()


def _sight(intents: Intents, upsets: tuple[str, ...]) -> Sight:
    shown = _shown(intents)
    return Sight(
        nodes=min(2, len(intents.apis)),
        store=Capability.REDIS in shown,
        log=Capability.EVENTS in shown and Capability.REDIS in shown,
        pipelines=Capability.FAULT_HOOK in shown,
        recordings=intents.adapter.name == "default",
        proxied=bool(intents.context.target.dialect.get("trusted_proxy")),
        users=len(intents.writers),
        near_miss=intents.has_credential("near_miss"),
        upsets=upsets,
        standby=bool(upsets) and len(intents.workers) > 1,
    )
