"""Version gating (seed §6 Version Gating Lookup): one required build, compared as an opaque string."""

from holdfast.check.finding import demand, expect
from holdfast.check.verifies import verifies
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.wire import Answer, refused, success
from holdfast.conformance.shared.wire import status

CURRENT = "1.4.0"
HASH = "9f2c1e7"


@verifies("AD-VER-01")
async def test_only_the_build_that_the_target_requires_is_let_in(admission: Admission) -> None:
    arena, current = await admission.instance(room=100), admission.build
    expect(await _first_try(admission, arena, build=current), success())
    for wrong in (f"{current}-beta.1", current[:-2], f"v{current}", current.swapcase(), ""):
        with admission.context.collect():
            await _refused_and_no_session(admission, arena, current, wrong)

    character = await admission.character()
    expect(await arena.connect(character, build=None), refused("VERSION_MISMATCH"), status(400), why="no build")
    expect(await arena.connect(character, build=current), success(), why="control: the same with its build")


@verifies("AD-VER-01", isolation="quiet", settings={"current_build": CURRENT})
async def test_neither_an_older_nor_a_newer_version_is_let_in(admission: Admission) -> None:
    arena = await admission.instance(room=100)
    expect(await _first_try(admission, arena, build=CURRENT), success())
    for wrong in ("1.3.9", "1.4.1", "2.0.0", "1.4"):
        with admission.context.collect():
            await _refused_and_no_session(admission, arena, CURRENT, wrong)


@verifies("AD-VER-01")
async def test_a_build_header_never_overrules_the_body(admission: Admission) -> None:
    """If the target takes no header, the body alone decides, and the last two expectations hold as well."""
    arena, current = await admission.instance(), admission.build
    header = str(admission.features.get("build_header") or "X-Client-Build")
    if admission.features.get("build_header"):
        expect(await _first_try(admission, arena, build=None, header={header: current}), success())
        expect(await _first_try(admission, arena, build=None, header={header: "1.3.9"}), refused("VERSION_MISMATCH"))
        answer = await _first_try(admission, arena, build=current, header={header: "1.3.9"})
        expect(answer, refused("VERSION_MISMATCH"), why="both are present and differ")

    answer = await _first_try(admission, arena, build="1.3.9", header={header: current})
    expect(answer, refused("VERSION_MISMATCH"), why="a right header does not repair a wrong body")
    expect(await _first_try(admission, arena, build=current, header={header: current}), success())


async def _first_try(
    admission: Admission, arena: Instance, *, build: str | None, header: dict[str, str] | None = None
) -> Answer:
    return await arena.connect(await admission.character(), build=build, headers=header)


async def _refused_and_no_session(admission: Admission, arena: Instance, current: str, wrong: str) -> None:
    character = await admission.character()
    legal = refused("VERSION_MISMATCH")
    expect(await arena.connect(character, build=wrong), legal, why=f'build "{wrong}", required is "{current}"')
    expect(
        await arena.connect(character, build=current), success(), why="control: no session, and the right build enters"
    )


@verifies("AD-VER-02", isolation="disruptive", settings={"current_build": CURRENT}, waits="recovery")
async def test_the_required_build_comes_from_the_environment_and_may_be_a_hash(admission: Admission) -> None:
    arena = await admission.instance()
    expect(await _first_try(admission, arena, build=CURRENT), success())
    expect(await _first_try(admission, arena, build=HASH), refused("VERSION_MISMATCH"))

    for node in admission.nodes:
        await admission.restart(node, current_build=HASH)

    expect(await _first_try(admission, arena, build=HASH), success(), why="the build of the new environment")
    for wrong in ("9f2c1e8", CURRENT):
        answer = await _first_try(admission, arena, build=wrong)
        expect(answer, refused("VERSION_MISMATCH"), why=f'build "{wrong}"')
        demand(answer.status < 500, "no server error", answer.describe(), "the required build is a hash")
