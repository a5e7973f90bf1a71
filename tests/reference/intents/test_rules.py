"""Rules of the intents reference that need no process: keys, payloads, addresses, scopes."""

import io
from typing import Any

import pytest
from multidict import CIMultiDict

from holdfast.reference.intents.idemkeys import IdemKeys
from holdfast.reference.intents.languard import LanGuard
from holdfast.reference.intents.payloads import START, Intent, Payloads
from holdfast.reference.intents.principals import READ, WRITE, Principals
from holdfast.reference.intents.problems import Refusal
from holdfast.reference.intents.settings import LAN, Settings, Token, networks, settings_from, slots
from holdfast.reference.shared.jsonlog import JsonLog
from holdfast.reference.shared.settings import BadSetting
from tests.reference.intents.world import CURRENT, PREVIOUS

REF = "1:0:19:132F:3EF:1:C00000:0:0:0:"


def keys(**settings: Any) -> tuple[IdemKeys, io.BytesIO]:
    log = io.BytesIO()
    return IdemKeys(Settings(**settings), JsonLog("a", log)), log


def live(ref: str = REF, profile: str = "universal", ms: int = 0) -> Intent:
    return Intent(START, service_ref=ref, profile=profile, start_ms=ms)


def vod(recording: str, ms: int) -> Intent:
    return Intent(START, service_ref=REF, recording_id=recording, profile="universal", start_ms=ms)


@pytest.mark.parametrize(
    ("secret", "intent", "key"),
    [
        (CURRENT, live(), "07a1878f202602d1b7a5c7c6e52db8c8ddc05b15e13c990b4f4d348b87f7e66a"),
        (CURRENT, live(ms=60_000), "07a1878f202602d1b7a5c7c6e52db8c8ddc05b15e13c990b4f4d348b87f7e66a"),
        (PREVIOUS, live(), "0599a6583157063edf513f0ffd26d1d5c031d7e26bcd99bfb41e6a5ba592a997"),
        (CURRENT, live(profile="low"), "dfe2d9228fae15d63c08dc4c809163212cccdcb0a84725661c210495c34f9581"),
        (CURRENT, vod("rec-0001", 10_999), "37cb0d3829aa49431cf29fe5f8f882b21241b5696990c98af5bfb38f83a284c3"),
        (CURRENT, vod("rec-0001", 60_000), "878e10be8609d445f375891488aebed316a4baf0d94a20f794a44a037d3976ba"),
        (CURRENT, vod("rec-0002", 10_000), "27569b2a4db9f096e9c57add76396b814f50d55c21b3731f83558fbe8d7a85c1"),
    ],
)
def test_keys_are_those_of_the_golden_vectors(secret: str, intent: Intent, key: str) -> None:
    assert keys(idem_secret=secret)[0].current(intent) == key


def test_the_current_secret_is_looked_up_first_and_makes_new_keys() -> None:
    both, _ = keys(idem_secret=CURRENT, idem_secret_previous=PREVIOUS)
    assert both.candidates(live()) == [keys(idem_secret=each)[0].current(live()) for each in (CURRENT, PREVIOUS)]
    assert both.current(live()) == both.candidates(live())[0]


def test_a_missing_secret_is_made_up_once_and_told_without_its_value() -> None:
    (one, log), (other, _) = keys(), keys()
    empty = "1ceff5280270e85d0e91070c94d0876d50f5bec187d65ccc70d2f3a00d2a948a"
    assert len({one.current(live()), other.current(live()), empty}) == 3
    assert one.current(live()) == one.current(live())
    assert one.secrets[0].hex().encode() not in log.getvalue()
    assert log.getvalue().count(b"XG2G_IDEM_SECRET") == 1
    assert not keys(idem_secret=CURRENT)[1].getvalue()


PAYLOADS = Payloads(Settings())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"serviceRef": " "},
        {"serviceRef": "\t"},
        {"serviceRef": 7},
        {"serviceRef": ["a"]},
        {"serviceRef": None},
        {"serviceRef": "a|b"},
        {"serviceRef": "\ud800"},
        {"serviceRef": "a", "profileID": 3},
        {"serviceRef": "a", "profileID": ""},
        {"serviceRef": "a", "profileID": "no such profile!"},
        {"serviceRef": "a", "profileID": "low", "profile": "high"},
        {"serviceRef": "a", "bogus": 1},
        {"serviceRef": "a", "type": "stream.pause"},
        {"serviceRef": "a", "type": ["stream.start"]},
        {"serviceRef": "a", "correlationId": "a b"},
        {"serviceRef": "a", "params": {"mode": "OTHER"}},
        {"serviceRef": "a", "params": {"x": 1}},
        {"serviceRef": "a", "params": {"mode": "recording"}},
        {"recordingId": "a|b"},
        {"recordingId": ""},
        {"recordingId": "a", "startMs": -1},
        {"recordingId": "a", "startMs": 10.5},
        {"recordingId": "a", "startMs": "10000"},
        {"recordingId": "a", "startMs": True},
        {"type": "stream.stop"},
        {"type": "stream.stop", "sessionId": "not-a-uuid"},
    ],
)
def test_a_payload_that_does_not_fit_is_400(body: dict[str, Any]) -> None:
    with pytest.raises(Refusal) as refused:
        PAYLOADS.validate(body)
    assert (refused.value.status, refused.value.code) == (400, "INVALID_INPUT")


@pytest.mark.parametrize("raw", [b"{", b"", b"null", b"[]", b'"x"', b"\xff"])
def test_a_body_that_is_no_object_is_400(raw: bytes) -> None:
    with pytest.raises(Refusal):
        PAYLOADS.parse(raw)


def test_a_valid_payload_is_trimmed_and_completed() -> None:
    intent = PAYLOADS.validate({"serviceRef": f" {REF} ", "idempotencyKey": "a", "params": {"mode": "live"}})
    assert intent == live()
    assert PAYLOADS.validate({"recordingId": "r", "profile": "low", "profileID": "low"}).vod
    stop = PAYLOADS.validate({"type": "stream.stop", "sessionId": "3F2504E0-4F89-41D3-9A0C-0305E82C3301"})
    assert stop.session_id == "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


def passes(*lines: str, peer: str = "127.0.0.1", trusted: str = "127.0.0.1", allowed: str = LAN) -> bool:
    guard = LanGuard(Settings(trusted_proxies=networks(trusted), lan_allowed=networks(allowed)))
    headers = CIMultiDict([("X-Forwarded-For", line) for line in lines] + [("X-Real-IP", "10.0.0.1")])
    try:
        guard.check(peer, headers)
    except Refusal as refusal:
        assert refusal.status == 403
        return False
    return True


@pytest.mark.parametrize(
    "text",
    [
        *("8.8.8.8", " 8.8.8.8 ", ",8.8.8.8", "2001:db8::1", "::ffff:8.8.8.8", "172.32.0.1", "192.169.0.1", "11.0.0.1"),
        *("100.64.0.1", "192.168.1.5, 8.8.8.8", ",".join(["8.8.8.8"] * 1000), "8.8.8.8:443", "[2001:db8::1]:80"),
    ],
)
def test_a_public_client_is_refused_however_it_is_written(text: str) -> None:
    assert not passes(text)


@pytest.mark.parametrize(
    "text",
    [
        *("10.10.55.123", "172.16.0.9", "192.168.1.20", "::ffff:10.0.0.1", "172.31.255.254", "10.255.255.255"),
        *("8.8.8.8, 192.168.1.5", "", "not-an-ip", "8.8.8.8,", "::1", "[::1]:80", "10.0.0.1:1"),
    ],
)
def test_a_client_of_the_lan_passes(text: str) -> None:
    assert passes(text)


def test_the_chain_is_read_from_the_right_past_trusted_proxies_only() -> None:
    assert not passes("192.168.1.5", "8.8.8.8")
    assert passes("8.8.8.8", trusted="")
    assert not passes("10.0.0.1", trusted="", allowed="10.0.0.0/8")
    assert not passes("8.8.8.8, 10.0.0.5", trusted="127.0.0.1,10.0.0.0/8")
    assert passes("10.1.1.1", allowed="10.1.0.0/16")
    assert not passes("10.1.1.1, not-an-ip", allowed="10.1.0.0/16")
    assert passes("203.0.113.7, 203.0.113.8", trusted="127.0.0.1,203.0.113.0/24")
    assert not passes("10.0.0.1", peer="")


def test_tokens_are_compared_in_full_and_scopes_as_words() -> None:
    known = Principals(Settings(api_tokens=(Token("secret-w", frozenset({"v3:write"})),), api_token="one"))  # noqa: S106  # guards nothing
    assert known.authenticate("bearer secret-w", {}).scopes == {"v3:write"}
    for wrong in ("", "Bearer", "Bearer ", "Bearer secret", "secret-w", "Basic secret-w", "Bearer secret-w x"):
        with pytest.raises(Refusal) as refused:
            known.authenticate(wrong, {"token": "secret-w"})
        assert refused.value.status == 401
    assert known.allows(frozenset({"v3:admin"}), WRITE)
    assert known.allows(frozenset({"v3:write"}), READ)
    assert not any(known.allows(frozenset({scope}), WRITE) for scope in ("v3:write-preview", "xv3:write", "v3:read"))


def test_settings_are_read_and_refused_in_words() -> None:
    assert slots("0,1,4-6") == (0, 1, 4, 5, 6) == slots("0,1,4..6")
    given = {"XG2G_V3_API_LEASES": "off", "XG2G_LEASE_TTL": "6", "XG2G_LEASE_RENEW_EVERY": "1.5"}
    settings = settings_from({**given, "XG2G_API_TOKEN": "t", "XG2G_API_TOKEN_SCOPES": "v3:Read, x"})
    assert (settings.phase1, settings.lease_ttl, settings.renew_every) == (False, 6.0, 1.5)
    assert settings.known_tokens == (Token("t", frozenset({"v3:read", "x"})),)
    assert settings_from({}).phase1
    assert not settings_from({"XG2G_V3_FLAG_REMOVED": "true", "XG2G_V3_API_LEASES": "true"}).phase1
    for name, value in (
        ("XG2G_TUNER_SLOTS", "a"),
        ("XG2G_API_TOKENS", "{}x"),
        ("XG2G_TRUSTED_PROXIES", "home"),
        ("XG2G_LEASE_RENEW_EVERY", "30s"),
    ):
        with pytest.raises(BadSetting, match=name):
            settings_from({name: value})
