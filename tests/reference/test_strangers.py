"""Running references as strangers: every trait is seen on the wire, and nothing else has changed.

Positive controls: a dialect that is drawn but never spoken would let every run behind it pass for nothing.
"""

import asyncio
import json
import re
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import aiohttp

from holdfast.reference.shared.stranger.jsontext import UNKNOWN
from holdfast.reference.shared.stranger.traits import WIRE, Traits, draw_node, draw_traits
from tests.reference.lockd import world as lockd
from tests.reference.lockd.spy import spy
from tests.reference.world import FAST, bearer, until, world

BODY = b'{"characterId": "<nobody>/\xc3\xa9", "clientBuild": "old"}'


@dataclass
class Said:
    """One answer as it came, byte for byte, on a connection of its own."""

    raw: bytes
    closed: bool
    seconds: float

    @property
    def head(self) -> str:
        return self.raw.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def names(self) -> list[str]:
        return [line.partition(":")[0] for line in self.head.split("\r\n")[1:]]

    @property
    def body(self) -> str:
        return self.raw.partition(b"\r\n\r\n")[2].decode()

    @property
    def traits(self) -> Traits:
        found = re.search(r"(?i)x-dialect:\s*(\S+)", self.head)
        assert found
        return draw_traits(found[1])


async def ask(port: int, method: str = "POST", path: str = "/instances/i1/connect", *, stay: float = 0.4) -> Said:
    """Sends one request and reads for `stay` seconds behind the last byte, or until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    body = BODY if method == "POST" else b""
    lines = [f"{method} {path} HTTP/1.1", "Host: x", "Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in bearer("u-1").items()]
    began = time.monotonic()
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    raw, took, closed = b"", 0.0, False
    while not closed:
        try:
            async with asyncio.timeout(stay if raw else 5):
                piece = await reader.read(65536)
        except TimeoutError:
            break
        took = took or time.monotonic() - began
        raw, closed = raw + piece, not piece
    writer.close()
    return Said(raw, closed, took)


def canonical(name: str) -> bool:
    return name == "-".join(part.capitalize() for part in name.split("-"))


def in_order(names: list[str]) -> bool:
    return [name.lower() for name in names] == sorted(name.lower() for name in names)


def has_unknown(said: Said) -> bool:
    return any(f'"{name}"' in unchunked(said) for name, _ in UNKNOWN)


def unchunked(said: Said) -> str:
    return re.sub(r"\r\n[0-9A-F]+(;part=1)?\r\n", "", f"\r\n{said.body}") if "chunked" in said.head else said.body


SEEN: dict[tuple[str, str], Callable[[Said], bool]] = {
    ("case", "as written"): lambda said: "X-RateLimit-Limit" in said.names,
    ("case", "canonical"): lambda said: all(map(canonical, said.names)),
    ("case", "lower"): lambda said: all(name == name.lower() for name in said.names),
    ("order", "as written"): lambda said: not in_order(said.names),
    ("order", "sorted"): lambda said: in_order(said.names),
    ("order", "shuffled"): lambda said: not in_order(said.names),
    ("colon", ": "): lambda said: bool(re.search(r"(?i)content-type: a", said.head)),
    ("colon", ":"): lambda said: bool(re.search(r"(?i)content-type:a", said.head)),
    ("colon", ":  "): lambda said: bool(re.search(r"(?i)content-type:  a", said.head)),
    ("phrase", "as written"): lambda said: bool(re.match(r"HTTP/1.. \d+ \w", said.head)),
    ("phrase", "empty"): lambda said: bool(re.match(r"HTTP/1.. \d+ \r\n", said.head)),
    ("media_type", "as written"): lambda said: "charset" not in said.head,
    ("media_type", "charset"): lambda said: "charset=utf-8" in said.head,
    ("framing", "length"): lambda said: "content-length" in said.head.lower(),
    ("framing", "chunked"): lambda said: "chunked" in said.head or "HTTP/1.0" in said.head,
    ("framing", "until close"): lambda said: said.closed or "content-length" in said.head.lower(),
    ("ending", "close"): lambda said: said.closed and bool(re.search(r"(?i)connection: *close", said.head)),
    ("ending", "HTTP/1.0"): lambda said: said.closed and said.head.startswith("HTTP/1.0"),
    ("ending", "keep"): lambda said: not said.closed,
    ("spacing", "compact"): lambda said: '":"' in unchunked(said),
    ("spacing", "loose"): lambda said: '": "' in unchunked(said),
    ("spacing", "spaced"): lambda said: '" : "' in unchunked(said),
    ("spacing", "indented"): lambda said: '\r\n\t"' in said.body or "chunked" in said.head,
    ("numbers", "point"): lambda said: bool(re.search(r"remainingAttempts.*?\d\.0", unchunked(said))),
    ("numbers", "exponent"): lambda said: bool(re.search(r"remainingAttempts.*?\de0", unchunked(said))),
    ("numbers", "as written"): lambda said: not re.search(r"remainingAttempts[^,}]*[.e]\d", unchunked(said)),
    ("extra", "no"): lambda said: not has_unknown(said),
    ("extra", "first"): has_unknown,
    ("extra", "last"): has_unknown,
}
"""How a trait looks in an answer. Those that one answer can't show have tests of their own."""


async def test_an_admission_node_speaks_every_dialect_that_it_draws() -> None:
    async with world(STRANGER="7:a") as w:
        answers = await asyncio.gather(*(ask(w.ports[0]) for _ in range(120)))
    for (trait, form), shows in SEEN.items():
        drawn = [said for said in answers if getattr(said.traits, trait) == form]
        assert drawn, f"{trait} {form} was never drawn"
        # A shuffle may happen to be in order.
        wrong = [said for said in drawn if not shows(said)]
        assert len(wrong) <= len(drawn) // 10 if form == "shuffled" else not wrong, (trait, form, wrong[:1])
    assert {int(said.head.split(" ")[1]) for said in answers} <= {200, 400, 429}


async def test_an_answer_is_late_by_less_than_its_bound_and_not_every_one_is() -> None:
    async with world(STRANGER="7:a") as w:
        answers = [await ask(w.ports[0], "DELETE", "/instances/i1/queue?characterId=c") for _ in range(30)]
    late = [said.seconds for said in answers if said.traits.late == "yes"]
    prompt = [said.seconds for said in answers if said.traits.late == "no"]
    assert max(late) > max(0.005, sorted(prompt)[len(prompt) // 2])
    assert max(late) < 0.03 * float(FAST["CONNECTION_TIMEOUT_SECONDS"]) + 0.25


async def test_an_idle_connection_ends_unsaid() -> None:
    async with world(STRANGER="7:a") as w:
        answers = await asyncio.gather(*(ask(w.ports[0], "GET", "/health", stay=5) for _ in range(20)))
    idle = [said for said in answers if said.traits.ending == "idle"]
    assert idle
    assert all(said.closed and "close" not in said.head.lower() for said in idle)


def slow_name() -> str:
    return next(name for number in range(99) if draw_node(name := f"{number}:a").slow_start > 0.5)


async def test_a_slow_first_second_is_503_with_retry_after_while_health_is_200() -> None:
    async with world(STRANGER=slow_name()) as w:
        w.kill_node(0)
        w.start_node(0)

        async def healthy() -> bool:
            try:
                return bool((await w.call("GET", "/health", {}))["status"] == 200)
            except aiohttp.ClientError:
                return False

        await until(healthy, 15)
        refused = await w.admin("GET", "/drain-mode/status")
        assert (refused["status"], refused["headers"]["Retry-After"]) == (503, "1")
        await until(partial(w.answers, 0))


async def test_a_socket_hears_the_same_messages() -> None:
    seen = set()
    async with world(STRANGER="7:a") as w:
        instance = await w.instance(60)
        for _ in range(16):
            player = await w.player()
            answer = await player.connect(instance)
            ws = await player.attach(instance, answer["sessionId"])
            ready = await ws.receive_json()
            assert (ready["type"], ready["sessionId"]) == ("session_ready", answer["sessionId"])
            seen.add(any(name in ready for name, _ in UNKNOWN))
            await ws.close()
    assert seen == {True, False}


async def test_the_log_tells_once_what_was_drawn() -> None:
    async with world(STRANGER="7:a") as w:
        (told,) = w.events("stranger")
    assert told["name"] == "7:a"
    assert told["first"][0] == vars(draw_traits("7:a#1"))
    assert {name: told[name] for name in vars(draw_node("7:a"))} == vars(draw_node("7:a"))


# The same node with TLS identities.


def named(**wanted: object) -> str:
    return next(
        name
        for number in range(999)
        if all(getattr(draw_node(name := f"{number}:a"), trait) == value for trait, value in wanted.items())
    )


async def test_lockd_calls_its_peers_in_many_dialects() -> None:
    async with lockd.world(STRANGER="7:a") as w, spy(w) as member:

        async def heard_enough() -> bool:
            return len({each.headers.get("X-Dialect") for each in member.heard}) > 8

        await until(heard_enough, 30)
        drawn = [(draw_traits(each.headers["X-Dialect"]), each) for each in member.heard]
        assert all(">" in traits.name for traits, _ in drawn)
        for traits, each in drawn:
            if traits.case == "lower":
                assert all(name == name.lower() for name in each.names)
            assert in_order(each.names) or traits.order != "sorted"
            if "term" in each.body:
                assert isinstance(each.body["term"], int if traits.numbers == "as written" else float)
        assert {traits.ending for traits, _ in drawn} >= {"keep"}


async def test_a_listener_speaks_the_version_that_it_draws() -> None:
    for version in ("TLSv1.2", "TLSv1.3"):
        async with lockd.world(STRANGER=named(tls=version)) as w:
            _, writer = await asyncio.open_connection("127.0.0.1", w.ports[0], ssl=w.client.context)
            assert writer.get_extra_info("ssl_object").version() == version
            writer.transport.abort()


async def test_a_caller_without_a_certificate_is_cut_off_at_any_moment_and_hears_nothing() -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with lockd.world(STRANGER=named(cuts=True)) as w:
        passed = 0
        for _ in range(12):
            heard = b""
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", w.ports[0], ssl=context)
                passed += 1
                writer.write(b"POST /v1/tc/cluster/leave HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n{")
                async with asyncio.timeout(5):
                    heard = await reader.read()
            except (ConnectionError, ssl.SSLError):
                pass
            assert heard == b""
        assert passed
        assert (await w.client.call("GET", 0, "/healthz"))["status"] == 200


async def test_terms_of_a_stranger_may_have_gaps_and_only_grow() -> None:
    async with lockd.world(STRANGER=named(gaps=True)) as w, spy(w) as member:
        member.refuse_votes()

        async def asked_thrice() -> bool:
            return len({int(each.body["term"]) for each in member.calls("tc/lease/acquire")}) >= 3

        await until(asked_thrice, 30)
        terms = [int(each.body["term"]) for each in member.calls("tc/lease/acquire")]
        assert terms == sorted(terms)


async def test_a_cluster_of_strangers_agrees() -> None:
    async with lockd.world(0) as w:
        for _ in range(3):
            w.add()
        for number in range(3):
            w.start(number, STRANGER=f"7:{'abc'[number]}")
        await w.ready(0, 1, 2)
        await lockd.until(partial(w.all_listed, 0, 1, 2), 30)
        await lockd.until(partial(w.agreed, 0, 1, 2), 30)
        body = {"txn_id": lockd.XID, "state": "commit"}
        answer = await w.client.post(2, "txn/decide", body)
        assert (answer["status"], answer["state"]) == (200, "commit")
        assert json.loads(w.log(0).read_text().splitlines()[0])["event"] == "stranger"


def test_every_form_is_looked_for() -> None:
    elsewhere = ("late", "status", "frames", "writes", "chunks", "escapes", "keys")
    apart = {("ending", "idle"), *((trait, form) for trait in elsewhere for form in WIRE[trait])}
    assert {(trait, form) for trait, forms in WIRE.items() for form in forms} == {*SEEN, *apart}
