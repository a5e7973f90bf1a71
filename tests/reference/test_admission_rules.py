"""The rules of the admission reference, apart from network and Redis."""

import hashlib
import hmac

import pytest

from holdfast.reference.admission.http import segments
from holdfast.reference.admission.identity import Identity
from holdfast.reference.admission.rules import MESSAGES, Rules
from holdfast.reference.admission.settings import Settings, settings_from
from holdfast.reference.shared.redislink import RedisClock
from holdfast.reference.shared.settings import BadSetting


def rules(**given: object) -> Rules:
    return Rules(Settings(**given))  # type: ignore[arg-type]  # each test names the settings it needs


def test_the_defaults_are_the_specs_values() -> None:
    settings = settings_from({})
    assert (settings.attempt_deadline, settings.grace, settings.token_ttl) == (10, 60, 60)
    assert (settings.queue_cap, settings.rate_failures, settings.rate_window) == (1000, 5, 60)
    assert (settings.janitor_interval, settings.heartbeat_interval, settings.poll_interval) == (30, 30, 5)


def test_small_and_fractional_values_are_accepted() -> None:
    settings = settings_from({"CONNECTION_GRACE_SECONDS": "0.4", "MAX_QUEUE_LENGTH": "1", "PORT": "0"})
    assert (settings.grace, settings.queue_cap, settings.port) == (0.4, 1, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CONNECTION_GRACE_SECONDS", "soon"),
        ("CONNECTION_GRACE_SECONDS", "-1"),
        ("CONNECTION_GRACE_SECONDS", "nan"),
        ("MAX_QUEUE_LENGTH", "1.5"),
        ("PORT", "70000"),
        ("DRAIN_MODE_ENABLED", "perhaps"),
        ("REDIS_URL", "localhost:6379"),
        ("AUDIT_SINK", "tcp://nowhere"),
    ],
)
def test_a_bad_value_is_named_in_one_sentence(name: str, value: str) -> None:
    with pytest.raises(BadSetting, match=rf"^{name}={value!r} must .*environment of the node\.$"):
        settings_from({name: value})


def test_a_tls_port_without_its_files_is_refused() -> None:
    with pytest.raises(BadSetting, match="TLS_CERT_FILE"):
        settings_from({"TLS_PORT": "3443"})


@pytest.mark.parametrize("build", ["1.3.9", "1.4.1", "1.4.0-beta.1", "1.4", "v1.4.0", "1.4.0 ", ""])
def test_only_the_current_build_is_right(build: str) -> None:
    assert rules(current_client_build="1.4.0").build_ok("1.4.0", None)
    assert not rules(current_client_build="1.4.0").build_ok(build, None)


def test_a_build_sent_twice_has_to_be_right_twice() -> None:
    current = rules(current_client_build="9f2c1e7")
    assert current.build_ok(None, "9f2c1e7")
    assert current.build_ok("9f2c1e7", "9f2c1e7")
    assert not current.build_ok("9f2c1e8", "9f2c1e7")
    assert not current.build_ok("", "9f2c1e7")
    assert not current.build_ok(None, None)


def test_only_failures_that_the_client_can_be_blamed_for_count() -> None:
    counted = set(rules().counted())
    assert counted <= set(MESSAGES)
    free = {"RATE_LIMITED", "QUEUE_FULL", "DRAIN_MODE", "MAINTENANCE", "ALREADY_IN_SESSION", "TIMEOUT"}
    assert {"VERSION_MISMATCH", "INVALID_INSTANCE", "CHARACTER_SUSPENDED"} <= counted
    assert not counted & free


def test_the_lock_comes_first_and_the_waiting_case_before_drain_and_cap() -> None:
    for order in Rules.precedence.values():
        assert order[0] == "rate_lock"
        assert order.index("character_owned") < order.index("not_suspended") < order.index("build_current")
    admit = Rules.precedence["admit"]
    assert admit.index("already_waiting") < admit.index("drain") < admit.index("free_slot") < admit.index("queue_cap")


def test_two_intervals_of_silence_are_tolerated() -> None:
    assert rules(heartbeat_interval=30.0).stale_limit() == 60
    assert rules(heartbeat_interval=30.0).limits()["staleMs"] == 60_000


@pytest.mark.parametrize(("lock_ms", "seconds"), [(60_000, 60), (59_001, 60), (1, 1), (0, 1)])
def test_the_lock_time_is_in_whole_seconds_and_never_below_one(lock_ms: int, seconds: int) -> None:
    assert rules().retry_after("RATE_LIMITED", lock_ms) == seconds


@pytest.mark.parametrize("text", ["", "a b", "a/b", "a:b", "é", "a\n", "x" * 65, "*", "\x00"])
def test_ids_that_may_not_become_part_of_a_key(text: str) -> None:
    assert rules().is_id("A-z_9")
    assert not rules().is_id(text)


def test_only_close_code_1000_is_a_leave() -> None:
    assert [code for code in (None, 0, 1000, 1001, 1005, 1006, 4000) if rules().is_leave(code)] == [1000]


def test_a_replacement_is_not_final_while_it_may_still_be_undone() -> None:
    assert not rules(attempt_deadline=10.0).end_is_final("replace", 5_000)
    assert rules(attempt_deadline=10.0).end_is_final("replace", 25_000)
    assert rules(attempt_deadline=10.0).end_is_final("network", 0)


def test_credentials_are_bound_to_the_user_id() -> None:
    identity = Identity("secret", "admin")
    signature = hmac.new(b"secret", b"u.1", hashlib.sha256).hexdigest()
    assert identity.authenticate(f"Bearer hf1.u.1.{signature}") == "u.1"
    assert identity.authenticate(f"bearer hf1.u.1.{signature}") == "u.1"
    bad = ["", "InvalidFormat", "Bearer", "Bearer x", f"Bearer hf1.u.2.{signature}", f"Basic hf1.u.1.{signature}"]
    bad += [f"Bearer hf1..{signature}", "Bearer hf1.u.1.é", f"Bearer hf1.{'u' * 129}.{signature}"]
    assert [text for text in bad if identity.authenticate(text)] == []
    assert identity.is_admin("admin")
    assert not identity.is_admin("é")


def test_an_escaped_slash_stays_inside_its_segment_of_the_path() -> None:
    assert segments("/instances/bad%2Fid/connect?x=/y") == ["instances", "bad/id", "connect"]


def test_the_redis_clock_trusts_the_shortest_round_trip_and_follows_a_step() -> None:
    clock = RedisClock()
    clock.observe(10.0, 10.002, 5_001_000)
    clock.observe(11.0, 13.0, 5_009_000)  # a slow answer says little
    assert clock.redis_ms(12.0) == pytest.approx(5_002_999, abs=2)
    clock.observe(1000.0, 1000.002, 9_000_000)
    assert clock.redis_ms(1000.001) == pytest.approx(9_000_000, abs=2)
