"""What the driver makes of servers that nobody here wrote: late, without some calls, in other words."""

import asyncio
import json
from pathlib import Path

import pytest
from aiohttp import web

from holdfast.check.finding import (
    Absent,
    ArrangementFailed,
    Finding,
    Inconclusive,
    NotApplicable,
    NotObservable,
    Unsafe,
    expect,
)
from holdfast.conformance.admission import rawtcp, test_single_session
from holdfast.conformance.admission.client import Admission, Instance
from holdfast.conformance.admission.wire import refused
from holdfast.target.descriptor import TargetError, load
from tests.conformance.admission.strangers import DESCRIPTOR, SIGNED, admits, against, told, transcript

BUSY = {"Retry-After": "1"}


async def _registers(_: web.Request) -> web.Response:
    return told()


def test_a_target_that_asks_to_come_back_later_is_waited_for(tmp_path: Path) -> None:
    asked: list[str] = []

    async def starting(request: web.Request) -> web.Response:
        if "admin" in request.path:
            asked.append(request.path)
        return told(503, BUSY) if asked and len(asked) < 2 else told()

    async def check(admission: Admission) -> None:
        await admission.instance()

    against(starting, tmp_path, check)
    assert len(asked) == 2


def test_a_node_that_has_just_started_is_judged_only_once_it_serves(tmp_path: Path) -> None:
    asked: list[str] = []

    async def starting(request: web.Request) -> web.Response:
        if "Authorization" not in request.headers:
            return told(401, outcome="failed", reason="NOT_AUTHENTICATED")  # it has not asked its store
        asked.append(request.path)
        return told(503, BUSY) if len(asked) < 2 else told(outcome="failed", reason="MAINTENANCE")

    async def check(admission: Admission) -> None:
        expect(await admission.call(Instance(admission, "i").request("c"), admission.user()), refused("MAINTENANCE"))

    against(starting, tmp_path, check)


def test_a_target_that_never_comes_back_is_inconclusive_for_all_rows_but_the_owner(tmp_path: Path) -> None:
    async def away(_: web.Request) -> web.Response:
        return told(503, BUSY)

    async def check(admission: Admission) -> None:
        await admission.instance()

    with pytest.raises(ArrangementFailed, match=r"expected 2xx; seen 503 .* \(judged by AD-ADMIT-03\)"):
        against(away, tmp_path, check)
    with pytest.raises(Finding):
        against(away, tmp_path, check, row="AD-ADMIT-03")


@pytest.mark.parametrize("status", [404, 405, 501])
def test_missing_administration_calls_have_one_cause_whichever_is_met_first(tmp_path: Path, status: int) -> None:
    async def without(_: web.Request) -> web.Response:
        return told(status)

    async def instance_first(admission: Admission) -> None:
        await admission.instance()

    async def character_first(admission: Admission) -> None:
        await admission.character()

    causes = set()
    for check in (instance_first, character_first):
        with pytest.raises(NotObservable) as blocked:
            against(without, tmp_path, check)
        causes.add(blocked.value.hook)
    assert causes == {"admin calls"}


def test_wrong_credentials_of_the_administrator_are_told_as_such(tmp_path: Path) -> None:
    async def refusing(_: web.Request) -> web.Response:
        return told(401)

    async def check(admission: Admission) -> None:
        await admission.instance()

    with pytest.raises(NotObservable, match="admin_token"):
        against(refusing, tmp_path, check)


def test_a_failed_step_names_the_row_that_owns_it(tmp_path: Path) -> None:
    async def refuses(request: web.Request) -> web.Response:
        return told() if "admin" in request.path else told(outcome="failed", reason="MAINTENANCE")

    async def check(admission: Admission) -> None:
        arena, character = await admission.instance(), await admission.character()
        await arena.admit(character)

    with pytest.raises(ArrangementFailed, match="judged by AD-ADMIT-01"):
        against(refuses, tmp_path, check)
    with pytest.raises(Finding):
        against(refuses, tmp_path, check, row="AD-ADMIT-01")


def test_a_legal_timeout_arranges_nothing_and_violates_nothing(tmp_path: Path) -> None:
    async def slow(request: web.Request) -> web.Response:
        return told() if "admin" in request.path else told(outcome="timeout", reason="TIMEOUT")

    async def check(admission: Admission) -> None:
        arena, character = await admission.instance(), await admission.character()
        await arena.admit(character)

    with pytest.raises(Inconclusive, match="ended as timeout"):
        against(slow, tmp_path, check, row="AD-ADMIT-01")


@pytest.mark.parametrize(("presented", "owner"), [("token", "AD-RECON-01"), ("replace", "AD-REPL-01")])
def test_a_token_that_was_never_given_is_never_presented(tmp_path: Path, presented: str, owner: str) -> None:
    asked: list[str] = []

    async def without_tokens(request: web.Request) -> web.Response:
        asked.append(request.path)
        return told() if "admin" in request.path else admits()

    async def check(admission: Admission) -> None:
        arena, character = await admission.instance(), await admission.character()
        session = await arena.admit(character)
        value = session.token if presented == "token" else session.offer
        await arena.connect(character, **{presented: value})  # type: ignore[arg-type]  # one of two names

    with pytest.raises(ArrangementFailed, match=f"judged by {owner}"):
        against(without_tokens, tmp_path, check)
    assert len([path for path in asked if path.endswith("/connect")]) == 1
    with pytest.raises(Absent):
        against(without_tokens, tmp_path, check, row=owner)


def test_a_fixed_capacity_serves_checks_that_only_need_room(tmp_path: Path) -> None:
    async def nothing_to_administer(_: web.Request) -> web.Response:
        return told(404)

    async def check(admission: Admission) -> None:
        assert [(await admission.instance()).id for _ in range(2)] == ["one", "two"]
        with pytest.raises(NotObservable, match=r"capacity the suite can set \(\[dialect\] capacity = 50\)"):
            await admission.instance(capacity=1)
        with pytest.raises(NotObservable, match="capacity the suite can set"):
            await admission.instance(room=51)
        with pytest.raises(NotObservable, match=r"more names in \[dialect\] instances \(it has 2\)"):
            await admission.instance()
        with pytest.raises(NotObservable, match="capacity the suite can set"):
            await Instance(admission, "one").put(capacity=1)

    against(nothing_to_administer, tmp_path, check, dialect='capacity = 50\ninstances = ["one", "two"]')


def test_without_accounts_characters_need_no_registration_and_nobody_is_a_stranger(tmp_path: Path) -> None:
    asked: list[str] = []

    async def without(request: web.Request) -> web.Response:
        asked.append(request.path)
        return told()

    async def check(admission: Admission) -> None:
        character = await admission.character()
        with pytest.raises(NotApplicable, match=r"\[dialect\] accounts = false"):
            await admission.suspend(character)
        with pytest.raises(NotApplicable, match=r"\[dialect\] accounts = false"):
            admission.stranger()

    against(without, tmp_path, check, dialect="accounts = false")
    assert not [path for path in asked if "admin" in path]


def test_without_sockets_a_session_is_held_and_only_the_use_of_its_socket_is_not_applicable(tmp_path: Path) -> None:
    async def no_sockets(request: web.Request) -> web.Response:
        return told() if "admin" in request.path else admits("x" * 36)

    async def check(admission: Admission) -> None:
        arena = await admission.instance()
        held = await arena.hold()
        for use in (held.socket.beat, held.socket.drop, held.socket.answers):
            with pytest.raises(NotApplicable, match=r"\[dialect\] sockets = false"):
                await use()

    against(no_sockets, tmp_path, check, dialect="sockets = false")


def test_without_a_queue_a_full_instance_is_no_accusation(tmp_path: Path) -> None:
    async def full(request: web.Request) -> web.Response:
        return told() if "admin" in request.path else told(outcome="failed", reason="CAPACITY_FULL")

    async def check(admission: Admission) -> None:
        arena, character = await admission.instance(capacity=1), await admission.character()
        for meet in (arena.enqueue, arena.connect, arena.status):
            with pytest.raises(NotApplicable, match=r"\[dialect\] queue = false"):
                await meet(character)

    against(full, tmp_path, check, dialect="queue = false")


def test_a_misspelt_dialect_is_one_sentence(tmp_path: Path) -> None:
    text = DESCRIPTOR.format(url="http://127.0.0.1:1", dialect='name = "contrakt"', credentials=SIGNED)
    (tmp_path / "stranger.toml").write_text(text)
    with pytest.raises(TargetError, match=r"\[dialect\] name: 'contrakt' is none of 'contract', 'tilemud-code'"):
        load(tmp_path / "stranger.toml")


def test_raw_requests_are_read_in_the_dialect_too(tmp_path: Path) -> None:
    async def upstream(_: web.Request) -> web.Response:
        return told(400, outcome="invalid_request", message="Request validation failed")

    async def check(admission: Admission) -> None:
        answer = await rawtcp.exchange(admission, [b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"])
        expect(answer, refused("INVALID_REQUEST"))
        expect(await admission.raw("POST", "/", data=b"{", headers={}), refused("INVALID_REQUEST"))

    against(upstream, tmp_path, check, dialect='name = "tilemud-code"')


def test_a_burst_finds_a_server_that_looks_before_it_leaps(tmp_path: Path) -> None:
    """Its gap between look and leap is shorter than a handshake, so that fresh connections would hide it."""
    inside: set[str] = set()

    async def naive(request: web.Request) -> web.Response:
        if not request.path.endswith("/connect"):
            return told()
        character = json.loads(await request.text())["characterId"]
        if character in inside:
            return told(outcome="failed", reason="ALREADY_IN_SESSION")
        await asyncio.sleep(0)
        inside.add(character)
        return admits()

    async def check(admission: Admission) -> None:
        await test_single_session._one_winner([await admission.instance()], 60, admission.nodes)

    with pytest.raises(Unsafe, match="one success"):
        against(naive, tmp_path, check, row="AD-ADMIT-09")


def test_a_burst_goes_over_connections_that_are_open_already(tmp_path: Path) -> None:
    ports: list[tuple[str, int]] = []

    async def remembers(request: web.Request) -> web.Response:
        peer = request.transport.get_extra_info("peername") if request.transport else None
        ports.append((request.path.rpartition("/")[2], peer[1] if peer else 0))
        return told(outcome="failed", reason="MAINTENANCE")

    async def check(admission: Admission) -> None:
        arena = Instance(admission, "i")
        user = admission.user()
        await admission.burst([lambda: admission.call(arena.request("c"), user)] * 20)

    against(remembers, tmp_path, check)
    warm = {port for call, port in ports if call == "status"}
    used = {port for call, port in ports if call == "connect"}
    assert len(warm) == 20
    assert used <= warm


def test_the_transcript_shows_the_headers_that_are_judged(tmp_path: Path) -> None:
    async def throttled(_: web.Request) -> web.Response:
        said = {"retry-after": "7", "x-ratelimit-remaining": "0"}
        return told(429, said, outcome="failed", reason="RATE_LIMITED", retryAfterSeconds=7.0)

    async def check(admission: Admission) -> None:
        arena = Instance(admission, "i")
        answer = await admission.call(arena.request("c"), None, headers={"X-Client-Build": "old"})
        assert (answer.retry_header, answer.retry_after, answer.remaining) == (7, 7, 0)
        assert "[X-Client-Build: old]" in transcript(admission)
        assert "retry after 7 [Retry-After: 7] [X-RateLimit-Remaining: 0]" in transcript(admission)

    against(throttled, tmp_path, check)


def test_a_compressed_answer_is_an_answer(tmp_path: Path) -> None:
    async def compresses(_: web.Request) -> web.Response:
        answer = told(outcome="failed", reason="MAINTENANCE")
        answer.enable_compression(web.ContentCoding.gzip)
        return answer

    async def check(admission: Admission) -> None:
        expect(await admission.call(Instance(admission, "i").request("c"), admission.user()), refused("MAINTENANCE"))

    against(compresses, tmp_path, check)


def test_users_of_the_descriptors_list_are_with_one_check_at_a_time(tmp_path: Path) -> None:
    """A second user who is really the first, with its locks and sessions, would accuse a sound target."""
    listed = 'identities = [{ user = "u1", bearer = "b1", characters = ["c1"] }, { user = "u2", bearer = "b2" }]'

    async def check(admission: Admission) -> None:
        first, second = admission.user(), admission.user()
        assert (first.id, second.id) == ("u1", "u2")
        with pytest.raises(NotObservable, match="more entries"):
            admission.user()
        assert (await admission.character(first)).id == "c1"
        with pytest.raises(NotObservable, match="more characters"):
            await admission.character(first)
        admission.identities.give_back(60)
        with pytest.raises(NotObservable, match="more entries"):
            admission.user()
        admission.identities.give_back(0)

    against(_registers, tmp_path, check, credentials=f'{listed}\nadmin_token = "admin"')
