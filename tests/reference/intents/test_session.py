"""API and worker in real processes with a real Valkey: a session from its intent to its end."""

import asyncio
import signal
from functools import partial

from tests.reference.intents.world import CURRENT, PREVIOUS, TTL, World, channel, until, world


async def gone(w: World, session: str) -> bool:
    return session not in (await w.leases()).values()


async def test_a_start_runs_with_both_leases_and_a_stop_frees_them_at_once() -> None:
    async with world() as w:
        ref = channel()
        session = await w.ready(ref)
        assert await w.leases() == {f"lease:service:{ref}": session, "lease:tuner:0": session}
        assert await w.runs(ref) == 1
        assert (await w.stop(session))["http"] == 202
        await w.shows(session, "STOPPED", "R_CLIENT_STOP")
        assert await w.leases() == {}
        assert (await w.stop(session))["http"] == 202
        assert await w.seen(session) == ("STOPPED", "R_CLIENT_STOP")
        assert await w.ready(ref) != session
        states = [(each["from"], each["to"]) for each in w.events("session.state") if each["sessionId"] == session]
        assert states == [("NEW", "STARTING"), ("STARTING", "READY"), ("READY", "STOPPED")]


async def test_a_herd_over_two_apis_makes_one_session() -> None:
    async with world(apis=2) as w:
        ref = channel()
        answers = await asyncio.gather(*(w.start(ref, node=n % 2) for n in range(100)))
        assert {answer["http"] for answer in answers} == {202}
        (session,) = {answer["sessionId"] for answer in answers}
        await w.shows(session, "READY")
        assert [answer["status"] for answer in answers].count("accepted") == 1
        assert await w.redis("XLEN", "bus:session") == 1
        assert len(await w.redis("KEYS", "session:*")) == 1
        assert len(await w.redis("KEYS", "idem:*")) == 1
        assert len(await w.leases()) == 2


async def test_a_second_profile_is_busy_and_leaves_the_holder_alone() -> None:
    async with world() as w:
        ref = channel()
        holder = await w.ready(ref, "high")
        for profile in ("low", "dvr"):
            await w.ended(ref, profile, "R_LEASE_BUSY")
        assert await w.seen(holder) == ("READY", "R_NONE")
        assert await w.leases() == {f"lease:service:{ref}": holder, "lease:tuner:0": holder}
        assert await w.runs(ref) == 1


async def test_no_free_slot_gives_the_channel_back() -> None:
    async with world(XG2G_TUNER_SLOTS="3") as w:
        ref = channel()
        holder = await w.ready(channel())
        await w.ended(ref, "low", "REJECTED_NO_TUNER")
        assert set((await w.leases()).values()) == {holder}
        assert await w.runs(ref) == 0


async def test_recordings_take_no_lease_and_share_whole_seconds() -> None:
    async with world(XG2G_TUNER_SLOTS="") as w:
        ids = [(await w.vod("rec-1", ms))["sessionId"] for ms in (10_000, 10_500, 10_999, 9_999, 11_000)]
        assert (len(set(ids)), len(set(ids[:3]))) == (3, 1)
        for session in set(ids):
            await w.shows(session, "READY")
        assert await w.leases() == {}


async def test_a_session_lives_longer_than_its_leases_and_keeps_its_mapping() -> None:
    async with world() as w:
        ref = channel()
        session = await w.ready(ref)
        await asyncio.sleep(TTL * 1.5)
        again = await w.start(ref)
        assert (again["sessionId"], again["status"]) == (session, "idempotent_replay")
        assert len(await w.leases()) == 2


async def test_an_event_that_is_delivered_again_changes_nothing() -> None:
    async with world() as w:
        ref = channel()
        session = await w.ready(ref)
        ((_, words),) = await w.redis("XRANGE", "bus:session", "-", "+")
        for _ in range(3):
            await w.redis("XADD", "bus:session", "*", *words)
        await asyncio.sleep(0.5)
        assert await w.seen(session) == ("READY", "R_NONE")
        assert (await w.runs(ref), len(await w.leases())) == (1, 2)
        await w.stop(session)
        await w.shows(session, "STOPPED")
        await w.redis("XADD", "bus:session", "*", *words)
        await asyncio.sleep(0.3)
        assert await w.leases() == {}


async def test_garbage_on_the_bus_is_acknowledged_and_harms_nobody() -> None:
    async with world() as w:
        for words in (("x", "y"), ("type", "session.start", "data", "[]"), ("type", "session.start", "data", "{")):
            await w.redis("XADD", "bus:session", "*", *words)
        await w.ready(channel())

        async def settled() -> bool:
            return bool((await w.redis("XPENDING", "bus:session", "orchestrator"))[0] == 0)

        await until(settled)


async def test_a_stop_wins_over_a_start_under_way() -> None:
    async with world() as w:
        ref = channel()
        await w.steer(ref, start_delay_ms=1000)
        session = (await w.start(ref))["sessionId"]

        async def asked() -> bool:
            return await w.runs(ref) == 1

        await until(asked)
        await w.stop(session)
        await w.shows(session, "STOPPED", "R_CLIENT_STOP")
        assert await w.leases() == {}
        await asyncio.sleep(1.2)
        assert await w.seen(session) == ("STOPPED", "R_CLIENT_STOP")


async def test_a_stop_before_the_worker_has_the_event_prevents_the_start() -> None:
    async with world() as w:
        ref = channel()
        w.nodes[1].send_signal(signal.SIGSTOP)
        session = (await w.start(ref))["sessionId"]
        await w.stop(session)
        assert (await w.start(ref))["sessionId"] != session
        w.nodes[1].send_signal(signal.SIGCONT)
        await w.shows(session, "STOPPED", "R_CLIENT_STOP")


async def test_a_pipeline_that_fails_or_ends_frees_both_leases() -> None:
    async with world() as w:
        ref = channel()
        for how, reason in (
            ({"fail_start": True}, "R_PIPELINE_START_FAILED"),
            ({"exit_after_ms": 100}, "R_PROCESS_ENDED"),
        ):
            await w.steer(ref, **how)
            await w.ended(ref, "low", reason)
            assert await w.leases() == {}


async def test_renewal_goes_on_while_a_pipeline_starts_slowly() -> None:
    async with world() as w:
        ref = channel()
        await w.steer(ref, start_delay_ms=TTL * 1500)
        session = (await w.start(ref))["sessionId"]
        await w.shows(session, "READY")
        assert len(await w.leases()) == 2


async def test_a_lost_lease_ends_the_session_and_stays_with_its_new_holder() -> None:
    async with world() as w:
        session = await w.ready(channel())
        await w.redis("SET", "lease:tuner:0", "intruder", "PX", 60_000)
        await w.shows(session, "FAILED", "R_LEASE_EXPIRED")
        assert await w.leases() == {"lease:tuner:0": "intruder"}


async def test_an_orderly_stop_ends_sessions_and_releases_leases() -> None:
    async with world() as w:
        session = await w.ready(channel())
        w.nodes[1].terminate()
        assert await asyncio.to_thread(w.nodes[1].wait, 10) == 0
        assert await w.leases() == {}
        assert await w.seen(session) == ("STOPPED", "R_CANCELLED")


async def test_a_killed_worker_that_restarts_frees_everything_and_runs_what_was_queued() -> None:
    async with world() as w:
        ref = channel()
        dead = await w.ready(ref, "high")
        w.kill_node(1)
        assert len(await w.leases()) == 2
        queued = (await w.start(ref, "low"))["sessionId"]
        assert await w.seen(queued) == ("NEW", "R_NONE")
        await w.restart(1)
        await w.shows(queued, "READY")
        assert await w.seen(dead) == ("FAILED", "R_LEASE_EXPIRED")
        assert set((await w.leases()).values()) == {queued}
        await w.ended(ref, "high", "R_LEASE_BUSY")


async def test_a_worker_killed_while_it_starts_a_session_does_not_run_it_again() -> None:
    async with world() as w:
        ref = channel()
        await w.steer(ref, start_delay_ms=5000)
        session = (await w.start(ref))["sessionId"]
        await w.shows(session, "STARTING")
        await w.restart(1)
        await w.shows(session, "FAILED", "R_LEASE_EXPIRED")
        assert await w.leases() == {}


async def test_a_standby_takes_the_channel_when_the_leases_of_a_killed_worker_have_run_out() -> None:
    async with world(workers=2) as w:
        ref = channel()
        w.nodes[2].send_signal(signal.SIGSTOP)
        dead = await w.ready(ref, "high")
        w.nodes[2].send_signal(signal.SIGCONT)
        w.kill_node(1)
        await w.ended(ref, "low", "R_LEASE_BUSY")
        await until(partial(gone, w, dead))
        await w.ready(ref, "dvr")
        await w.shows(dead, "FAILED", "R_LEASE_EXPIRED")


async def test_a_suspended_worker_takes_nothing_back_from_the_standby() -> None:
    async with world(workers=2) as w:
        ref = channel()
        w.nodes[2].send_signal(signal.SIGSTOP)
        old = await w.ready(ref, "high")
        w.nodes[2].send_signal(signal.SIGCONT)
        w.nodes[1].send_signal(signal.SIGSTOP)
        await until(partial(gone, w, old))

        async def taken() -> str:
            session = (await w.start(ref, "low"))["sessionId"]
            await asyncio.sleep(0.3)
            return str(session) if (await w.seen(session))[0] == "READY" else ""

        new = await until(taken, 15)
        w.nodes[1].send_signal(signal.SIGCONT)
        await w.shows(old, "FAILED", "R_LEASE_EXPIRED")
        await asyncio.sleep(TTL)
        assert await w.seen(new) == ("READY", "R_NONE")
        assert set((await w.leases()).values()) == {new}


async def test_secrets_rotate_without_losing_a_running_session() -> None:
    async with world() as w:
        ref = channel()
        session = await w.ready(ref)
        await w.restart(0, XG2G_IDEM_SECRET=PREVIOUS, XG2G_IDEM_SECRET_PREVIOUS=CURRENT)
        answers = await asyncio.gather(*(w.start(ref) for _ in range(20)))
        assert {answer["sessionId"] for answer in answers} == {session}
        await w.restart(0, XG2G_IDEM_SECRET="")
        assert (await w.start(ref))["sessionId"] != session
        (warning,) = w.events("idem.secret_generated")
        assert (warning["level"], "XG2G_IDEM_SECRET" in warning["message"]) == ("warning", True)


async def test_a_bus_that_is_no_stream_is_503_and_leaves_nothing() -> None:
    async with world(XG2G_V3_API_LEASES="on") as w:
        ref = channel()
        await w.redis("RENAME", "bus:session", "kept")
        await w.redis("SET", "bus:session", "no stream")
        answer = await w.start(ref)
        assert (answer["http"], answer["code"], answer["headers"]["Retry-After"]) == (503, "SERVICE_UNAVAILABLE", "1")
        assert (await w.leases(), await w.redis("KEYS", "idem:*")) == ({}, [])
        await w.redis("DEL", "bus:session")
        await w.redis("RENAME", "kept", "bus:session")
        await w.ready(ref)
