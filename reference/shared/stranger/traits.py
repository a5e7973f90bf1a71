"""What a stranger's dialect consists of, and how it is drawn.

A *trait* is one thing that HTTP, TLS or JSON leave open, and its value is one of the forms that real servers use. The
traits of a node hold as long as it runs. Answers have the dialect of their connection, which is drawn anew for each
one, and calls one of their own, so that one run meets many dialects. Every draw depends on the seed, the node and the
number of the connection (`17:a#12`) or call (`17:a>12`) alone: the name is always the same dialect, whatever else the
run does.

Theory of the choices. A trait may be here only if a client that follows the documents can't tell that anything has
changed. Header names are case-insensitive and ordered only among equals (RFC 9110 5.1, 5.3), white space around a value
is no part of it (5.5), the reason phrase may be empty (RFC 9112 4), a body is the same whatever its framing (6). A
connection may end behind any answer that says so, and when it is idle also unsaid (9.3, 9.5); one that ends unsaid
behind every answer would be illegal. An object has no order (RFC 8259 4), and a number with a zero fraction is an
integer (JSON Schema 2020-12, 4.2.3). Nothing here changes what is said, or which rule decided it.
"""

import random
from dataclasses import asdict, dataclass
from typing import Any

WIRE: dict[str, tuple[str, ...]] = {
    # As aiohttp or Node write them, as Go does, as Rust's hyper does.
    "case": ("as written", "canonical", "lower"),
    "order": ("as written", "sorted", "shuffled"),
    "colon": (": ", ":", ":  "),
    "phrase": ("as written", "empty"),
    "media_type": ("as written", "charset"),
    "framing": ("length", "chunked", "until close"),
    "chunks": ("one", "many", "extended"),
    "writes": ("whole", "head first", "pieces"),
    "ending": ("keep", "keep", "idle", "close", "HTTP/1.0"),
    "spacing": ("loose", "compact", "spaced", "indented"),
    "keys": ("as written", "sorted", "reversed"),
    "numbers": ("as written", "point", "exponent"),
    "escapes": ("as written", "utf-8", "html", "slash"),
    "extra": ("no", "first", "last"),
    "frames": ("whole", "fragments"),
    "late": ("no", "no", "yes"),
    "status": ("as written", "other"),
}
"""Traits of a connection and their forms. A form that is named twice is drawn twice as often."""


@dataclass(frozen=True)
class Traits:
    """The dialect of one connection. `name` says how it was drawn."""

    name: str
    case: str = "as written"
    order: str = "as written"
    colon: str = ": "
    phrase: str = "as written"
    media_type: str = "as written"
    framing: str = "length"
    chunks: str = "one"
    writes: str = "whole"
    ending: str = "keep"
    spacing: str = "loose"
    keys: str = "as written"
    numbers: str = "as written"
    escapes: str = "as written"
    extra: str = "no"
    frames: str = "whole"
    late: str = "no"
    status: str = "as written"


@dataclass(frozen=True)
class NodeTraits:
    """What holds for a node from its start to its end.

    `tls`: the newest version that its listener speaks. `cuts`: whether a caller without a certificate is cut off behind
    the handshake, at any moment, instead of being refused by it; both are a refused handshake to that caller.
    `slow_start`: for how many seconds it can't reach its store at first. `gaps`: whether a number that only has to
    grow is used up by a try that fails.
    """

    tls: str
    cuts: bool
    slow_start: float
    gaps: bool


def draw_traits(name: str) -> Traits:
    draw = random.Random(name)
    return Traits(name, **{trait: draw.choice(forms) for trait, forms in WIRE.items()})


def draw_node(name: str) -> NodeTraits:
    draw = random.Random(name)
    return NodeTraits(
        tls=draw.choice(("TLSv1.2", "TLSv1.3")),
        cuts=draw.random() < 0.5,
        slow_start=round(draw.uniform(0.3, 1.0), 2) if draw.random() < 0.4 else 0.0,
        gaps=draw.random() < 0.5,
    )


def told(traits: Traits | NodeTraits) -> dict[str, Any]:
    """The traits as fields of a log line."""
    return asdict(traits)
