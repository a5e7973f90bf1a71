"""What the model costs a walk: its steps, compared with the same calls by the bare driver on a fresh world."""

import random
import time
from dataclasses import dataclass, field

from holdfast.check.decisive import judged
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import spec_of, verifies
from holdfast.check.walk.coverage import Coverage
from holdfast.check.walk.draw import Drawer
from holdfast.check.walk.play import Clock, Play
from holdfast.check.walk.possible import Possible
from holdfast.check.walk.vocabulary import Command, Seen
from holdfast.conformance.admission.client import Admission
from holdfast.conformance.admission.walks.model import AdmissionModel, Sight
from holdfast.conformance.admission.walks.spans import Spans
from holdfast.conformance.admission.walks.state import State
from holdfast.conformance.admission.walks.world import AdmissionWorld
from holdfast.run.harness import Harness
from holdfast.run.job import Job
from holdfast.run.stream import Stream
from holdfast.spec.catalogue import builtin
from holdfast.target.descriptor import builtin_path, load

STEPS, WALKS = 40, 5


@dataclass
class Cost:
    """Seconds by the clock and of this process's CPU."""

    wall: float = 0.0
    cpu: float = 0.0
    _began: tuple[float, float] = (0.0, 0.0)

    def __enter__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall += time.perf_counter() - self._began[0]
        self.cpu += time.process_time() - self._began[1]


@dataclass
class Compared:
    """Steps of walks, and what they cost with the model and as bare calls."""

    steps: int = 0
    model: Cost = field(default_factory=Cost)
    bare: Cost = field(default_factory=Cost)

    @property
    def ratio(self) -> float:
        """Steps a CPU second of the harness with the model, against the same calls without."""
        return self.bare.cpu / self.model.cpu


@dataclass
class Recording:
    """A world that notes what it was asked to do."""

    world: AdmissionWorld
    done: list[Command] = field(default_factory=list)

    async def do(self, command: Command) -> Seen:
        self.done.append(command)
        return await self.world.do(command)

    def can(self, command: Command) -> bool:
        return self.world.can(command)

    def relation(self, command: Command) -> str:
        return self.world.relation(command)

    async def close(self) -> None:
        await self.world.close()


_SEEN = Compared()


@verifies("AD-ADMIT-01", waits="grace_reclaim")
async def walks_and_calls(admission: Admission, T: SpecTime) -> None:
    keys, sight = admission.keys(), Sight(nodes=2, records=True, events=True)
    for number in range(WALKS):
        world = Recording(await AdmissionWorld.begin(admission, admission.nodes[:2], keys))
        model = AdmissionModel(Spans.of(T, via_grace=False, logged=True, counted=False), sight)
        play = Play(model, world, Possible(model, [State()]), Clock(sleep=T.sleep))
        drawer = Drawer(model, world, Coverage(model.goal()), random.Random(number))
        with _SEEN.model:
            for _ in range(STEPS):
                step = drawer.draw(play.possible, play.steps, play.clock.now(), patience=0)  # no wait fits into that
                assert step is not None
                await play.perform(step)
        _SEEN.steps += len(play.steps)
        await world.close()
        bare = await AdmissionWorld.begin(admission, admission.nodes[:2], keys)
        with _SEEN.bare:
            for command in world.done:
                if bare.can(command):
                    await bare.do(command)
        await bare.close()
    judged()


def compare() -> Compared:
    target = load(builtin_path("admission"))
    catalogue, spec = builtin(target.spec), spec_of(walks_and_calls)
    assert spec is not None
    harness = Harness(target, Stream())
    try:
        harness.open()
        outcomes = [
            outcome for _, outcome in harness.run([Job("bench", spec, target, catalogue, target.timings(catalogue))])
        ]
    finally:
        harness.close()
    assert [str(each.verdict) for each in outcomes] == ["pass"], outcomes[0].reason
    return _SEEN
