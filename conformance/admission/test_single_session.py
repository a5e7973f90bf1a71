"""One session per character, everywhere (seed §1, §11 Atomic Admission)."""

from collections.abc import Sequence
from functools import partial

from holdfast.check.finding import expect
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.crowds import one_success
from holdfast.conformance.admission.identities import Character
from holdfast.conformance.admission.judging import served
from holdfast.conformance.admission.wire import Answer, refused

AT_ONCE = 60
INSTANCES = 5
# Only the first moment of a burst decides, and therefore several small bursts show more than one large one.
ROUNDS = 15


@verifies("AD-ADMIT-09")
async def test_a_second_attempt_is_refused_and_the_first_session_goes_on(admission: Admission) -> None:
    arena, elsewhere = await admission.instance(), await admission.instance()
    held = await arena.hold()

    for place in (arena, elsewhere):
        expect(await place.connect(held.character), refused("ALREADY_IN_SESSION"))
    await served(held.socket, "the first session")


@verifies("AD-ADMIT-09")
async def test_of_many_attempts_at_once_exactly_one_succeeds(admission: Admission) -> None:
    await _is_served(*await _one_winner([await admission.instance()], AT_ONCE, admission.nodes[:1]))


@verifies("AD-ADMIT-09")
async def test_attempts_on_five_instances_at_once_give_one_session(admission: Admission) -> None:
    for _ in range(3):
        await _is_served(*await _one_winner(await _instances(admission), INSTANCES, admission.nodes[:1]))


@verifies("AD-ADMIT-09", part=2, busy=True, waits="5*prompt")
async def test_of_many_attempts_over_three_nodes_exactly_one_succeeds(admission: Admission) -> None:
    arena = await admission.instance(room=AT_ONCE)
    for _ in range(ROUNDS):
        await _one_winner([arena], 2 * len(admission.nodes), admission.nodes)
    await _is_served(*await _one_winner([arena], AT_ONCE, admission.nodes))


@verifies("AD-ADMIT-09", part=2, waits="5*prompt")
async def test_attempts_on_five_instances_over_three_nodes_give_one_session(admission: Admission) -> None:
    arenas = await _instances(admission)
    for _ in range(ROUNDS):
        await _one_winner(arenas, INSTANCES, admission.nodes)


async def _instances(admission: Admission) -> list[Instance]:
    return [await admission.instance(room=AT_ONCE) for _ in range(INSTANCES)]


async def _one_winner(
    arenas: Sequence[Instance], attempts: int, nodes: Sequence[str]
) -> tuple[Instance, Answer, Character]:
    """Exactly one attempt succeeds; the others are refused, also by the lock of a target that counts refusals."""
    admission = arenas[0].admission
    character = await admission.character()
    calls = [(arenas[turn % len(arenas)], nodes[turn % len(nodes)]) for turn in range(attempts)]
    rivals = [partial(place.connect, character, node=node) for place, node in calls]
    answers = await admission.burst(rivals, nodes=nodes)

    winner = one_success(answers, f"{attempts} attempts of one character at once")
    return calls[answers.index(winner)][0], winner, character


async def _is_served(arena: Instance, answer: Answer, character: Character) -> None:
    await served(
        await arena.attach(answer.session_id, character, owner="AD-ADMIT-09"), "the session of the one success"
    )
