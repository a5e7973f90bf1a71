"""The LAN guard (seed section 6): which client a forwarded request comes from, and whether it is let in.

A request that has to be refused is a valid start, so that nothing but the guard can refuse it. One that has to pass has
no content: refused with 400 behind the guard, it shows that it got there and starts nothing.
"""

from typing import Any

from holdfast.check.finding import expect
from holdfast.check.spectime import SpecTime
from holdfast.check.verifies import verifies
from holdfast.conformance.intents.client import Intents
from holdfast.conformance.intents.lan import ALWAYS_INSIDE, HERE, INSIDE, NEVER_INSIDE, OTHER_HEADERS, PRIVATE, PUBLIC
from holdfast.conformance.intents.wire import FORWARDED, accepted, forwarded, let_through, refused

# What HTTP has for a header that is longer than a server reads.
TOO_LONG = (400, 431)


async def _starts(intents: Intents, why: str, *legal: Any, headers: Any) -> None:
    """Sends a valid start with these headers and judges the answer."""
    await intents.places()
    with intents.context.collect():
        expect(await intents.post(intents.start_body(intents.channel()), headers=headers), *legal, why=why)


async def _is_shut_out(intents: Intents, *lines: str) -> None:
    await _starts(intents, _said(*lines), refused(403), headers=forwarded(*lines))


async def _passes(intents: Intents, *lines: str) -> None:
    with intents.context.collect():
        expect(await intents.post({}, headers=forwarded(*lines)), let_through(), why=_said(*lines))


def _said(*lines: str) -> str:
    return ", then ".join(f"{FORWARDED}: {line}" for line in lines)


async def _start_with(intents: Intents, **settings: str) -> None:
    """Starts the API with these settings of its guard."""
    with intents.context.arranging("IN-LAN-01"):
        await intents.restart(intents.apis[0], **settings)


@verifies("IN-LAN-01")
async def test_a_client_from_outside_is_refused_and_one_from_inside_is_not(intents: Intents) -> None:
    intents.behind_proxy()
    body = intents.start_body(intents.channel())
    await intents.places()
    expect(await intents.post(body, headers=forwarded(PUBLIC)), refused(403), why=_said(PUBLIC))
    for address in PRIVATE:
        expect(await intents.post(body, headers=forwarded(address)), accepted(), why=_said(address))


@verifies("IN-LAN-01", part=2, isolation="quiet", nodes={"api": 1}, waits="api_ready + quiet_watch")
async def test_a_client_from_outside_leaves_nothing_behind(intents: Intents) -> None:
    if not intents.context.target.dialect.get("trusted_proxy"):
        await _start_with(intents, trusted_proxies=HERE)

    async def start_from_outside() -> None:
        answer = await intents.start(intents.channel(), headers=forwarded(PUBLIC))
        expect(answer, refused(403), why=_said(PUBLIC))

    await intents.leaves_no_trace(start_from_outside, "a start from outside")
    await _passes(intents, PRIVATE[0])


@verifies("IN-LAN-02")
async def test_the_chain_is_read_from_the_right(intents: Intents) -> None:
    intents.behind_proxy()
    await _is_shut_out(intents, f"192.168.1.5, {PUBLIC}")
    await _is_shut_out(intents, "192.168.1.5", PUBLIC)
    await _passes(intents, f"{PUBLIC}, 192.168.1.5")


@verifies("IN-LAN-02", part=2, isolation="disruptive", nodes={"api": 1}, waits="2*api_ready")
async def test_the_header_counts_from_a_trusted_proxy_only(intents: Intents) -> None:
    await _start_with(intents, trusted_proxies="")
    await _passes(intents, PUBLIC)
    await _start_with(intents, trusted_proxies="", lan_allowed="10.0.0.0/8")
    await _is_shut_out(intents, INSIDE)


@verifies("IN-LAN-02", part=2, isolation="disruptive", nodes={"api": 1}, waits="api_ready")
async def test_a_trusted_proxy_in_the_chain_is_not_the_client(intents: Intents) -> None:
    await _start_with(intents, trusted_proxies=f"{HERE},10.0.0.0/8")
    await _is_shut_out(intents, f"{PUBLIC}, 10.0.0.5")
    await _passes(intents, "192.168.1.5, 10.0.0.5")


@verifies("IN-LAN-02", part=2, isolation="disruptive", nodes={"api": 1}, waits="api_ready")
async def test_nothing_left_of_what_is_no_address_is_believed(intents: Intents) -> None:
    await _start_with(intents, trusted_proxies=HERE, lan_allowed="10.1.0.0/16")
    await _passes(intents, "10.1.1.1")
    await _is_shut_out(intents, "10.1.1.1, not-an-ip")


@verifies("IN-LAN-03")
async def test_odd_entries_admit_nobody_from_outside(intents: Intents, T: SpecTime) -> None:
    intents.behind_proxy()
    for line in NEVER_INSIDE:
        await _is_shut_out(intents, line)
    chain = ", ".join([PUBLIC] * T.count("xff_long_chain"))
    # A server that reads no header of this length refuses it before it comes to the guard.
    await _starts(intents, "a long chain", refused(403, *TOO_LONG), headers=forwarded(chain))
    for line in ALWAYS_INSIDE:
        await _passes(intents, line)


@verifies("IN-LAN-03")
async def test_an_empty_last_entry_is_no_error(intents: Intents) -> None:
    intents.behind_proxy()
    await _starts(intents, _said(f"{PUBLIC},"), refused(403), accepted(), headers=forwarded(f"{PUBLIC},"))


@verifies("IN-LAN-03")
async def test_no_other_header_names_the_client(intents: Intents) -> None:
    intents.behind_proxy()
    for name, value in OTHER_HEADERS.items():
        headers = {FORWARDED: PUBLIC, name: value}
        await _starts(intents, f"{_said(PUBLIC)} and {name}: {value}", refused(403), headers=headers)
    await _passes(intents, INSIDE)


@verifies("IN-LAN-03", part=2, isolation="disruptive", nodes={"api": 1}, waits="api_ready")
async def test_a_chain_of_trusted_proxies_only_falls_back_to_the_peer(intents: Intents) -> None:
    await _start_with(intents, trusted_proxies=f"{HERE},203.0.113.0/24")
    await _passes(intents, "203.0.113.7, 203.0.113.8")
    await _is_shut_out(intents, f"{PUBLIC}, 203.0.113.8")
