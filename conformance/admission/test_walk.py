"""Walks over the model of the spec (`walks/`): commands drawn from a seed, everything compared after each step."""

from collections.abc import Callable
from functools import partial

from holdfast.check.finding import NotObservable
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.walk.campaign import Ground, Walks
from holdfast.check.walk.turns import Turns
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.keys import Keys
from holdfast.conformance.admission.walks.commands import KILL, PAUSE
from holdfast.conformance.admission.walks.model import AdmissionModel, Sight
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.walks.world import AdmissionWorld
from holdfast.spec.capability import Capability

# Walkers on the deployment that checks share, and at most so many with a deployment each.
WALKERS, CRASHING = 12, 4
# The rows that rules of the model state.
ROWS = (
    "AD-ADMIT-01",
    "AD-ADMIT-02",
    "AD-ADMIT-04",
    "AD-ADMIT-05",
    "AD-ADMIT-06",
    "AD-ADMIT-07",
    "AD-ADMIT-08",
    "AD-ADMIT-09",
    "AD-DRAIN-01",
    "AD-DRAIN-02",
    "AD-DRAIN-03",
    "AD-DRAIN-04",
    "AD-OBS-02",
    "AD-OBS-03",
    "AD-OBS-04",
    "AD-OBS-05",
    "AD-POLL-01",
    "AD-POLL-04",
    "AD-POLL-05",
    "AD-QUEUE-01",
    "AD-QUEUE-02",
    "AD-QUEUE-05",
    "AD-QUEUE-06",
    "AD-QUEUE-08",
    "AD-QUEUE-10",
    "AD-QUEUE-11",
    "AD-QUEUE-12",
    "AD-RATE-01",
    "AD-RATE-02",
    "AD-RATE-03",
    "AD-RATE-04",
    "AD-RATE-06",
    "AD-RECON-01",
    "AD-RECON-02",
    "AD-RECON-03",
    "AD-RECON-04",
    "AD-RECON-05",
    "AD-RECON-06",
    "AD-RECON-07",
    "AD-RECON-08",
    "AD-RECON-09",
    "AD-REPL-01",
    "AD-REPL-02",
    "AD-REPL-03",
    "AD-REPL-04",
    "AD-REPL-05",
    "AD-SEC-01",
    "AD-SEC-02",
    "AD-SEC-03",
    "AD-STALE-01",
    "AD-STALE-02",
    "AD-STATE-01",
    "AD-TIME-03",
    "AD-VER-01",
)
# Those that rules about metrics state, where nobody else is counted.
METERED = ("AD-OBS-06", "AD-OBS-07", "AD-OBS-08", "AD-OBS-09")


@verifies("AD-ADMIT-02", "AD-QUEUE-01", part=2)
@verifies("AD-STALE-04", part=4)
@verifies(*ROWS, waits="grace_reclaim + 2*promote_within", walk_steps=240, needs=["wire"])
async def test_whatever_users_and_operators_do_leaves_what_the_model_says(
    admission: Admission, walks: Walks, T: SpecTime
) -> None:
    _leave_users_to_the_others(admission, walks)
    shown = _shown(admission)
    keys = admission.keys() if Capability.REDIS in shown else None
    sight = Sight(
        nodes=min(2, len(admission.nodes)),
        records=keys is not None,
        events=Capability.EVENTS in shown,
        cancels=_cancels(admission),
    )

    async def begin() -> Ground[State]:
        nodes = admission.nodes[: sight.nodes]
        world = await AdmissionWorld.begin(admission, nodes, keys)
        return Ground(AdmissionModel(_spans(admission, T, sight), sight), world, State())

    await walks.run(begin, walkers=WALKERS)


@verifies("AD-ADMIT-02", "AD-OBS-04", "AD-QUEUE-01", part=2)
@verifies("AD-STALE-04", part=4)
@verifies(*METERED, waits="grace_reclaim + 2*promote_within", isolation="disruptive", nodes=2)
@verifies(*ROWS, walk_steps=60, needs=["wire", "metrics", "multi_node", "control.kill", "control.restart"])
async def test_whatever_crashes_meanwhile_leaves_what_the_model_says(
    admission: Admission, walks: Walks, T: SpecTime
) -> None:
    """Each walker has a deployment of its own: nodes are killed and started again, metrics are exact."""
    _leave_users_to_the_others(admission, walks)
    several = admission.context.target.startable and not walks.short
    redis = Capability.REDIS in _shown(admission)
    upsets = (KILL, PAUSE) if Capability.CONTROL_PAUSE in _shown(admission) else (KILL,)
    sight = Sight(2, records=redis, metrics=True, upsets=upsets, cancels=_cancels(admission))

    async def build(number: int) -> tuple[Admission, Keys | None]:
        mine = await admission.another() if number else admission
        return mine, mine.keys() if redis else None

    async def begin(turn: tuple[Admission, Keys | None], done: Callable[[], None]) -> Ground[State]:
        mine, keys = turn
        left = partial(_nobody, mine)
        await T.until(left, give_up=T.stale_reclaim_grace, what="sessions of the last walk to end")
        world = await AdmissionWorld.begin(mine, mine.nodes, keys, done=done)
        return Ground(AdmissionModel(_spans(admission, T, sight), sight), world, State())

    deployments = Turns(build, CRASHING if several else 1)
    await walks.run(partial(deployments.begin, begin), walkers=CRASHING if several else 1)


async def _nobody(admission: Admission) -> bool:
    metrics = await admission.metrics()
    return not metrics.total("session_active_current") and not metrics.total("queue_depth_current")


def _leave_users_to_the_others(admission: Admission, walks: Walks) -> None:
    """Beside other checks a walk would use up the descriptor's list of users; a run of walks alone may."""
    if walks.short and not admission.identities.minted:
        raise NotObservable("[credentials] auth_secret", "walks beside other checks need users of their own")


def _shown(admission: Admission) -> frozenset[str]:
    return admission.context.target.capabilities() & admission.context.target.in_profile()


def _cancels(admission: Admission) -> bool:
    return bool(admission.features.get("cancel_replacement", True))


def _spans(admission: Admission, T: SpecTime, sight: Sight) -> Spans:
    return Spans.of(
        T, via_grace=bool(admission.features.get("stale_via_grace")), logged=sight.events, counted=sight.metrics
    )
