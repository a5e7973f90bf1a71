"""Walks over the model of the spec (`walks/`): commands drawn from a seed, everything compared after each step."""

from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.check.walk.campaign import Ground, Walks
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.walks.model import AdmissionModel, Sight
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.walks.world import AdmissionWorld
from holdfast.spec.capability import Capability

WALKERS = 12
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


@verifies("AD-ADMIT-02", "AD-QUEUE-01", part=2)
@verifies("AD-STALE-04", part=4)
@verifies(*ROWS, waits="grace_reclaim + 2*promote_within", walk_steps=240, needs=["wire"])
async def test_whatever_users_and_operators_do_leaves_what_the_model_says(
    admission: Admission, walks: Walks, T: SpecTime
) -> None:
    seen = admission.context.target.capabilities() & admission.context.target.in_profile()
    keys = admission.keys() if Capability.REDIS in seen else None
    sight = Sight(
        nodes=min(2, len(admission.nodes)),
        records=keys is not None,
        events=Capability.EVENTS in seen,
        cancels=bool(admission.features.get("cancel_replacement", True)),
    )
    spans = Spans.of(T, via_grace=bool(admission.features.get("stale_via_grace")), logged=sight.events)
    nodes = admission.nodes[: sight.nodes]

    async def begin() -> Ground[State]:
        return Ground(AdmissionModel(spans, sight), await AdmissionWorld.begin(admission, nodes, keys), State())

    await walks.run(begin, walkers=WALKERS)
