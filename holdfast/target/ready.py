r"""When a node counts as ready, as data of its descriptor.

`ready = "/health"` is short for `ready = { http = "/health" }`. Other kinds ask something else than HTTP, because not
every node serves it:

    ready = { tcp = "grpc" }                                    # urls.grpc accepts connections
    ready = { grpc = "grpc", service = "" }                     # urls.grpc answers SERVING to a health check
    ready = { redis-key = "cluster:nodes:{node}" }              # the key exists in the deployment's Redis
    ready = { redis-stream = "heartbeats", contains = "{node}" }  # the stream has an entry with this text in it
    ready = { log = "listening on" }                            # a line of the node's log matches
    ready = { http = "/ready", contains = "\"redis\":true" }    # 2xx, and the body has this text
    ready = { http = "/ready", url = "ops", ca = "{certs}/ca.pem" }  # at urls.ops, whose certificate this CA signed

`within` is how long the node may take ("15s" if not given). Placeholders are filled as in `start`.

Only what this start has brought about counts. A key, a stream entry or a log line that an earlier process of the same
node has left behind says nothing about the new one, so the probe looks before the node is started, and again after it.
(A key that has no expiry and the same value as before is taken as it is: nobody can tell who wrote it.)
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.spec.catalogue import seconds

KINDS = ("http", "tcp", "grpc", "redis-key", "redis-stream", "log")
WITHIN = 15.0
# As `ca`: any certificate will do.
ANY = "any"
_OPTIONS = {
    "http": {"ca", "contains", "header", "url"},
    "tcp": set[str](),
    "grpc": {"ca", "service"},
    "redis-key": set[str](),
    "redis-stream": {"contains"},
    "log": set[str](),
}


@dataclass(frozen=True)
class Ready:
    """What is asked: `kind` says how, `what` where, `options` what the answer must have."""

    kind: str
    what: str
    options: Mapping[str, str]
    within: float = WITHIN

    def filled(self, fill: Callable[[str], str]) -> "Ready":
        """Returns the same with its placeholders filled."""
        return replace(self, what=fill(self.what), options={name: fill(text) for name, text in self.options.items()})

    def problems(self, urls: Mapping[str, str]) -> Iterator[str]:
        """Yields what a node with these URLs can't be asked."""
        name = {"http": self.options.get("url", ""), "tcp": self.what, "grpc": self.what}.get(self.kind)
        if name is not None and name not in urls and (name or not urls):
            yield f"ready: {self.kind} needs a URL{f' {name!r}' * bool(name)}; urls has {', '.join(urls) or 'none'}"
        if self.kind == "log":
            try:
                re.compile(self.what)
            except re.error as error:
                yield f"ready: log = {self.what!r} is no regular expression: {error}"

    def describe(self) -> str:
        wanted = {
            "http": f"2xx on {self.what}",
            "tcp": f"an open port ({self.what})",
            "grpc": f"SERVING on {self.what}",
            "redis-key": f"the key {self.what} in Redis",
            "redis-stream": f"an entry in the stream {self.what}",
            "log": f"a line with {self.what!r} in its log",
        }[self.kind]
        return wanted + "".join(f", {name} {value!r}" for name, value in self.options.items())


def read_ready(value: Any) -> Ready:
    """What a descriptor says under `ready`."""
    if isinstance(value, str):
        return Ready("http", value, {})
    kinds = [kind for kind in KINDS if kind in value]
    if len(kinds) != 1:
        raise ValueError(f'[[node]] ready: name one of {", ".join(KINDS)}, e.g. ready = {{ tcp = "grpc" }}')
    kind = kinds[0]
    options = {name: str(text) for name, text in value.items() if name not in (kind, "within")}
    if unknown := options.keys() - _OPTIONS[kind]:
        known = ", ".join(sorted(_OPTIONS[kind] | {"within"}))
        raise ValueError(f"[[node]] ready: {kind} takes no {min(unknown)}; it takes {known}")
    return Ready(kind, str(value[kind]), options, seconds(str(value["within"])) if "within" in value else WITHIN)
